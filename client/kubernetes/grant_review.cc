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

// Resource name and device id.
using DeviceName = std::pair<std::string_view, std::string_view>;
// The kubelet allocates a device to one pod at a time; this is a set, so that a response that contradicts that revokes
// nothing.
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

// For each grant, whether the kubelet allocated one of its devices again long after it: then the pod that the grant was
// created for has ended, even if a pod has its name again. The order decides, and not time alone, because clocks are
// set back.
std::vector<bool> FindReallocated(std::span<const KeptGrant> grants, milliseconds same_pod) {
  std::vector<bool> reallocated(grants.size(), false);
  // Newest creation time of a device among the grants after the current one.
  std::map<DeviceName, int64_t> newest_ms;
  for (size_t index = grants.size(); index-- > 0;) {
    const GrantRecord& record = grants[index].record;
    for (const std::string& id : record.device_ids) {
      const auto [newest, first] = newest_ms.try_emplace({record.resource, id}, record.made_ms);
      reallocated[index] = reallocated[index] || newest->second - record.made_ms > same_pod.count();
      newest->second = std::max(newest->second, record.made_ms);
    }
  }
  return reallocated;
}

struct Holding {
  bool held = false;
  // Another pod holds one of the grant's devices, and the grant's own pod does not hold that device.
  bool by_another = false;
  // The pod that holds the first held device of the grant.
  std::string pod;
};

Holding FindHolding(const GrantRecord& record, const PodsOfDevices& pods) {
  Holding holding{.pod = record.pod};
  for (const std::string& id : record.device_ids) {
    const auto found = pods.find({record.resource, id});
    if (found == pods.end()) {
      continue;
    }
    holding.held = true;
    if (holding.pod.empty()) {
      holding.pod = *found->second.begin();
    }
    holding.by_another = holding.by_another || !found->second.contains(holding.pod);
  }
  return holding;
}

Verdict EvaluateUnheld(KeptGrant& grant, milliseconds since_last_review, milliseconds grace) {
  // How long the devices were without a holder before the first review that shows it is unknown.
  grant.unheld = grant.unheld.has_value() ? *grant.unheld + since_last_review : milliseconds(0);
  return *grant.unheld >= grace ? Verdict::kUnheld : Verdict::kKeep;
}

}  // namespace

ReviewResult Review(std::vector<KeptGrant>& grants, std::span<const Holder> holders, milliseconds since_last_review,
                    const ReviewRules& rules) {
  const PodsOfDevices pods = PodsByDevice(holders);
  const std::vector<bool> reallocated = FindReallocated(grants, rules.same_pod);
  ReviewResult result{.verdicts = std::vector<Verdict>(grants.size(), Verdict::kKeep)};
  for (size_t index = 0; index < grants.size(); ++index) {
    KeptGrant& grant = grants[index];
    if (std::exchange(grant.fresh, false)) {
      continue;
    }
    const Holding holding = FindHolding(grant.record, pods);
    if (!holding.held) {
      result.verdicts[index] = EvaluateUnheld(grant, since_last_review, rules.grace);
      continue;
    }
    grant.unheld.reset();
    if (reallocated[index] || holding.by_another) {
      result.verdicts[index] = Verdict::kReplaced;
    } else if (grant.record.pod.empty()) {
      grant.record.pod = holding.pod;
      result.pods_recorded = true;
    }
  }
  return result;
}

}  // namespace rnicd::kubernetes
