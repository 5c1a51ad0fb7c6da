#include "client/kubernetes/grant_review.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;

// Resource and id.
using DeviceName = std::pair<std::string_view, std::string_view>;
// The kubelet gives a device to one pod at a time; a set, so that an answer that says otherwise revokes nothing.
using PodsOfDevices = std::map<DeviceName, std::set<std::string>>;

PodsOfDevices PodsByDevice(std::span<const Holder> holders) {
  PodsOfDevices pods;
  for (const Holder& holder : holders) {
    for (const std::string& id : holder.device_ids) {
      pods[{holder.resource, id}].insert(absl::StrCat(holder.namespace_name, "/", holder.pod));
    }
  }
  return pods;
}

// Of each grant, whether the kubelet has given one of its devices away again long after it: then the pod that it was
// made for is gone, even if its name is back. By the order, and not by time alone, because clocks are set back.
std::vector<bool> GivenAgain(std::span<const KeptGrant> grants, milliseconds same_pod) {
  std::vector<bool> given_again(grants.size(), false);
  // Of the grants behind the one that is looked at.
  std::map<DeviceName, int64_t> newest_ms;
  for (size_t index = grants.size(); index-- > 0;) {
    const GrantRecord& record = grants[index].record;
    for (const std::string& id : record.device_ids) {
      const auto [newest, first] = newest_ms.try_emplace({record.resource, id}, record.made_ms);
      given_again[index] = given_again[index] || newest->second - record.made_ms > same_pod.count();
      newest->second = std::max(newest->second, record.made_ms);
    }
  }
  return given_again;
}

struct Sight {
  bool held = false;
  // Another pod holds one of its devices, and its own does not hold that one.
  bool by_another = false;
  // The pod that holds the first of its devices that is held.
  std::string pod;
};

Sight LookAt(const GrantRecord& record, const PodsOfDevices& pods) {
  Sight sight{.pod = record.pod};
  for (const std::string& id : record.device_ids) {
    const auto found = pods.find({record.resource, id});
    if (found == pods.end()) {
      continue;
    }
    sight.held = true;
    if (sight.pod.empty()) {
      sight.pod = *found->second.begin();
    }
    sight.by_another = sight.by_another || !found->second.contains(sight.pod);
  }
  return sight;
}

Verdict JudgeUnheld(KeptGrant& grant, milliseconds since_last_look, milliseconds grace) {
  // Nobody knows for how long it was so before the first look that shows it.
  grant.unheld = grant.unheld.has_value() ? *grant.unheld + since_last_look : milliseconds(0);
  return *grant.unheld >= grace ? Verdict::kUnheld : Verdict::kStays;
}

}  // namespace

Reviewed Review(std::vector<KeptGrant>& grants, std::span<const Holder> holders, milliseconds since_last_look,
                const ReviewRules& rules) {
  const PodsOfDevices pods = PodsByDevice(holders);
  const std::vector<bool> given_again = GivenAgain(grants, rules.same_pod);
  Reviewed reviewed{.verdicts = std::vector<Verdict>(grants.size(), Verdict::kStays)};
  for (size_t index = 0; index < grants.size(); ++index) {
    KeptGrant& grant = grants[index];
    if (std::exchange(grant.fresh, false)) {
      continue;
    }
    const Sight sight = LookAt(grant.record, pods);
    if (!sight.held) {
      reviewed.verdicts[index] = JudgeUnheld(grant, since_last_look, rules.grace);
      continue;
    }
    grant.unheld.reset();
    if (given_again[index] || sight.by_another) {
      reviewed.verdicts[index] = Verdict::kReplaced;
    } else if (grant.record.pod.empty()) {
      grant.record.pod = sight.pod;
      reviewed.pods_noted = true;
    }
  }
  return reviewed;
}

}  // namespace rnicd::kubernetes
