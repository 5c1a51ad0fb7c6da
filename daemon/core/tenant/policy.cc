#include "daemon/core/tenant/policy.h"

#include <algorithm>

namespace rnicd::core {
namespace {

// True when no value is required, or the required value is present.
template <typename T>
bool Holds(const std::optional<T>& wanted, const T& found) {
  return !wanted.has_value() || *wanted == found;
}

bool HasLabels(const PodFacts& pod, const std::map<std::string, std::string>& wanted) {
  return std::ranges::all_of(wanted, [&pod](const auto& label) {
    const auto found = pod.labels.find(label.first);
    return found != pod.labels.end() && found->second == label.second;
  });
}

// Whether it is the caller's user or one of its groups.
bool HasSid(const Caller& caller, const std::string& sid) {
  if (caller.sid == sid) {
    return true;
  }
  return caller.group_sids != nullptr &&
         std::find(caller.group_sids->begin(), caller.group_sids->end(), sid) != caller.group_sids->end();
}

}  // namespace

bool Matcher::Matches(const Caller& caller, const PodFacts* pod) const {
  const bool asks_pod = pod_namespace.has_value() || !pod_labels.empty();
  if (!uid.has_value() && !gid.has_value() && !pod_uid.has_value() && !sid.has_value() && !asks_pod) {
    return false;
  }
  if (sid.has_value() && !HasSid(caller, *sid)) {
    return false;
  }
  if (!Holds(uid, caller.uid) || !Holds(gid, caller.gid) || !Holds(pod_uid, caller.container.pod_uid)) {
    return false;
  }
  if (!asks_pod) {
    return true;
  }
  return pod != nullptr && Holds(pod_namespace, pod->namespace_name) && HasLabels(*pod, pod_labels);
}

}  // namespace rnicd::core
