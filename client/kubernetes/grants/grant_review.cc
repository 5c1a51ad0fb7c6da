#include "client/kubernetes/grants/grant_review.h"

#include <utility>

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;

Verdict EvaluateGone(KeptGrant& grant, const NodeView& view, const ReviewOptions& options) {
  if (view.HeldByAnother(grant.record)) {
    return Verdict::kReplaced;
  }
  // How long the pod was gone before the first review that shows it is unknown.
  grant.unheld = grant.unheld.has_value() ? *grant.unheld + options.since_last_review : milliseconds(0);
  return *grant.unheld >= options.grace ? Verdict::kUnheld : Verdict::kKeep;
}

// Returns whether the record changed.
bool RecordPod(GrantRecord& record, const GrantHolder& holder) {
  bool changed = std::exchange(record.pod, holder.pod) != holder.pod;
  if (!holder.pod_uid.empty()) {
    changed = std::exchange(record.pod_uid, holder.pod_uid) != holder.pod_uid || changed;
  }
  if (!holder.container.empty()) {
    changed = std::exchange(record.container, holder.container) != holder.container || changed;
  }
  return changed;
}

bool IsAnotherPod(const GrantRecord& record, const GrantHolder& holder) {
  return !record.pod.empty() && record.pod != holder.pod;
}

}  // namespace

ReviewResult Review(std::vector<KeptGrant>& grants, const NodeView& view, const ReviewOptions& options) {
  ReviewResult result{.verdicts = std::vector<Verdict>(grants.size(), Verdict::kKeep)};
  for (size_t index = 0; index < grants.size(); ++index) {
    KeptGrant& grant = grants[index];
    if (std::exchange(grant.fresh, false)) {
      continue;
    }
    const GrantHolder holder = view.HolderOf(grant.record);
    if (options.is_of_running_kubelet && holder.is_known_to_kubelet) {
      grant.is_known_to_kubelet = true;
    }
    if (holder.life == Life::kGone) {
      result.verdicts[index] = EvaluateGone(grant, view, options);
    } else if (holder.life == Life::kAlive && IsAnotherPod(grant.record, holder)) {
      // No Allocate told so; the daemon or the file is from another time.
      result.verdicts[index] = Verdict::kReplaced;
    } else if (holder.life == Life::kAlive) {
      grant.unheld.reset();
      result.pods_recorded = RecordPod(grant.record, holder) || result.pods_recorded;
    }
  }
  return result;
}

}  // namespace rnicd::kubernetes
