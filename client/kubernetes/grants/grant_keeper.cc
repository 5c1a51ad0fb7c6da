#include "client/kubernetes/grants/grant_keeper.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/grants/grant_request.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;

// Times before 1970 come from clocks that are not set.
int64_t UnixMs(WallTime time) {
  return std::max<int64_t>(0, std::chrono::floor<milliseconds>(time.time_since_epoch()).count());
}

// The grant for exactly the record's devices; the number of grants if there is none.
size_t Find(std::span<const KeptGrant> grants, const GrantRecord& record) {
  const auto found = std::find_if(grants.begin(), grants.end(),
                                  [&](const KeptGrant& grant) { return SameDevices(grant.record, record); });
  return static_cast<size_t>(found - grants.begin());
}

// Suspends the grants that share a device with `record`, except the one at `index`. Returns whether one was active.
bool SuspendOthers(std::vector<KeptGrant>& grants, const GrantRecord& record, size_t index) {
  bool changed = false;
  for (size_t other = 0; other < grants.size(); ++other) {
    if (other != index && SharesDevice(grants[other].record, record)) {
      changed = !std::exchange(grants[other].record.suspended, true) || changed;
    }
  }
  return changed;
}

}  // namespace

GrantKeeper::GrantKeeper(Daemon& daemon, GrantFile& file, RandomSource& random, const log::Logger& logger,
                         GrantOptions options)
    : daemon_(daemon),
      file_(file),
      random_(random),
      options_(std::move(options)),
      sync_(daemon, logger, options_.connections) {}

absl::Status GrantKeeper::Load() {
  MutexLock change(change_);
  RNICD_ASSIGN_OR_RETURN(std::vector<GrantRecord> records, file_.Load());
  std::vector<KeptGrant> grants;
  for (GrantRecord& record : records) {
    grants.push_back(KeptGrant{.record = std::move(record)});
  }
  Publish(std::move(grants));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> GrantKeeper::Allocate(const ResourceSpec& resource, const std::vector<std::string>& device_ids,
                                               WallTime now) {
  RNICD_ASSIGN_OR_RETURN(v1::ResourceLimits limits,
                         LimitsFor(options_.limits, resource, device_ids.size(), options_.registered_times));
  GrantRecord record{.has_door = true,
                     .resource = resource.name,
                     .device_ids = device_ids,
                     .limits = std::move(limits),
                     .made_ms = UnixMs(now)};
  // The kubelet's order has no meaning.
  std::sort(record.device_ids.begin(), record.device_ids.end());
  record.name = GrantNameFor(resource.name, record.device_ids.front(), random_.Next());
  MutexLock change(change_);
  std::vector<KeptGrant> grants = Snapshot();
  const size_t same = Find(grants, record);
  if (same != grants.size() && grants[same].is_unused) {
    return AllocateAgain(std::move(grants), same, now);
  }
  RNICD_RETURN_IF_ERROR(Suspend(grants, record));
  return Create(std::move(grants), std::move(record));
}

// The earlier Allocate was for an init container of the same pod, or for a pod that ended before it began.
absl::StatusOr<uint64_t> GrantKeeper::AllocateAgain(std::vector<KeptGrant> grants, size_t index, WallTime now) {
  KeptGrant& grant = grants[index];
  grant.fresh = true;
  grant.is_known_to_kubelet = true;
  grant.unheld.reset();
  unsaved_ = unsaved_ || !grant.record.pod.empty();
  grant.record.pod.clear();
  grant.record.pod_uid.clear();
  grant.record.container.clear();
  const GrantRecord record = grant.record;
  if (absl::Status activated = Activate(std::move(grants), index, now); !activated.ok()) {
    // The pod fails, so nothing may use the grant.
    std::vector<KeptGrant> left = Snapshot();
    if (const size_t same = Find(left, record); same != left.size()) {
      left[same].record.suspended = true;
      activated.Update(Save(left));
      Publish(std::move(left));
    }
    return activated;
  }
  return record.grant_id;
}

// The file says first what the daemon is told next, so that a crash in between leaves no suspended grant in use.
absl::Status GrantKeeper::Suspend(std::vector<KeptGrant>& grants, const GrantRecord& record) {
  if (SuspendOthers(grants, record, grants.size())) {
    RNICD_RETURN_IF_ERROR(Save(grants));
    Publish(grants);
  }
  // Also those that were suspended before: the daemon may have been away then.
  for (const KeptGrant& grant : grants) {
    if (SharesDevice(grant.record, record)) {
      RNICD_RETURN_IF_ERROR(sync_.Revoke(grant.record, "its devices were allocated again"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> GrantKeeper::Create(std::vector<KeptGrant> grants, GrantRecord record) {
  RNICD_ASSIGN_OR_RETURN(const v1::CreateGrantResponse made,
                         daemon_.CreateGrant(RequestFor(record, options_.connections)));
  record.grant_id = made.grant_id();
  std::erase_if(grants, [&](const KeptGrant& grant) { return SameDevices(grant.record, record); });
  grants.push_back(
      KeptGrant{.record = std::move(record), .fresh = true, .is_known_to_kubelet = true, .is_unused = true});
  // Without the directory the daemon made a secret: it does not know the field.
  absl::Status kept =
      made.socket_dir().empty()
          ? absl::FailedPreconditionError("the daemon makes no doors: it is older than this device plugin; upgrade it")
          : Save(grants);
  if (!kept.ok()) {
    // If this fails, too, the grant is adopted from the daemon's list and revoked there for lack of a pod.
    (void)daemon_.RevokeGrant(made.grant_id());
    return kept;
  }
  Publish(std::move(grants));
  return made.grant_id();
}

absl::Status GrantKeeper::Prepare(const std::string& resource, const std::vector<std::string>& device_ids,
                                  const std::string& pod_uid, WallTime now) {
  const GrantRecord wanted{.resource = resource, .device_ids = device_ids};
  MutexLock change(change_);
  std::vector<KeptGrant> grants = Snapshot();
  const size_t index = Find(grants, wanted);
  if (index != grants.size()) {
    KeptGrant& grant = grants[index];
    grant.is_unused = false;
    if (!pod_uid.empty()) {
      unsaved_ = std::exchange(grant.record.pod_uid, pod_uid) != pod_uid || unsaved_;
    }
    Publish(grants);
    RNICD_RETURN_IF_ERROR(Activate(grants, index, now));
    grants = Snapshot();
  }
  const size_t found = Find(grants, wanted);
  if (found == grants.size()) {
    return absl::FailedPreconditionError("the grant of these devices is gone; delete the pod, and it gets a new one");
  }
  return grants[found].is_withheld
             ? absl::FailedPreconditionError("the node offers these devices no longer, because its pool became smaller")
             : absl::OkStatus();
}

absl::Status GrantKeeper::Activate(std::vector<KeptGrant> grants, size_t index, WallTime now) {
  const GrantRecord record = grants[index].record;
  const bool changed = SuspendOthers(grants, record, index);
  if (std::exchange(grants[index].record.suspended, false) || changed || unsaved_) {
    RNICD_RETURN_IF_ERROR(Save(grants));
  }
  Publish(grants);
  return Synchronize(std::move(grants), now);
}

void GrantKeeper::KubeletConnected() {
  MutexLock change(change_);
  kubelet_is_new_ = true;
  std::vector<KeptGrant> grants = Snapshot();
  for (KeptGrant& grant : grants) {
    grant.is_unused = false;
    grant.is_known_to_kubelet = false;
  }
  Publish(std::move(grants));
}

std::set<std::string> GrantKeeper::DevicesToAvoid(const std::string& resource) const {
  std::set<std::string> ids;
  MutexLock lock(mutex_);
  for (const KeptGrant& grant : grants_) {
    if (grant.record.resource == resource && !grant.is_known_to_kubelet) {
      ids.insert(grant.record.device_ids.begin(), grant.record.device_ids.end());
    }
  }
  return ids;
}

void GrantKeeper::AwaitTurn() {
  MutexLock change(change_);
  MutexLock lock(mutex_);
}

absl::Status GrantKeeper::Renew(WallTime now) {
  MutexLock change(change_);
  return Synchronize(Snapshot(), now);
}

absl::Status GrantKeeper::Synchronize(std::vector<KeptGrant> grants, WallTime now) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::GrantInfo> known, daemon_.Grants());
  // First what has to go, so that no device is in two grants in between.
  absl::Status status = sync_.RevokeSuspended(grants, known);
  bool adopted = false;
  if (!IsTransportFailure(status)) {
    UpdateStatus(status, sync_.Adopt(grants, known, options_.resources, UnixMs(now), adopted));
  }
  const size_t before = grants.size();
  if (!IsTransportFailure(status)) {
    UpdateStatus(status, sync_.RenewLost(grants, known, options_.offered_bytes));
  }
  if (!IsTransportFailure(status)) {
    UpdateStatus(status, sync_.Bind(grants));
  }
  if (grants.size() != before || adopted || unsaved_) {
    status.Update(Save(grants));
  }
  Publish(std::move(grants));
  return status;
}

absl::Status GrantKeeper::Reconcile(const NodeView& view, WallTime now) {
  MutexLock change(change_);
  std::vector<KeptGrant> grants = Snapshot();
  const size_t before = grants.size();
  const ReviewResult result = Review(grants, view,
                                     {.since_last_review = SinceLastReview(now),
                                      .grace = options_.grace,
                                      .is_of_running_kubelet = !std::exchange(kubelet_is_new_, false)});
  absl::Status status = Revoke(grants, result.verdicts);
  if (!IsTransportFailure(status)) {
    UpdateStatus(status, sync_.Bind(grants));
  }
  if (result.pods_recorded || grants.size() != before || unsaved_) {
    status.Update(Save(grants));
  }
  Publish(std::move(grants));
  return status;
}

milliseconds GrantKeeper::SinceLastReview(WallTime now) {
  const milliseconds most = (options_.grace + milliseconds(1)) / 2;
  const WallTime last = std::exchange(last_review_, now).value_or(now);
  return std::clamp(std::chrono::floor<milliseconds>(now - last), milliseconds(0), most);
}

absl::Status GrantKeeper::Revoke(std::vector<KeptGrant>& grants, std::span<const Verdict> verdicts) const {
  absl::Status status;
  std::vector<KeptGrant> stay;
  for (size_t index = 0; index < grants.size(); ++index) {
    if (verdicts[index] != Verdict::kKeep && !IsTransportFailure(status)) {
      const absl::Status revoked =
          sync_.Revoke(grants[index].record,
                       verdicts[index] == Verdict::kUnheld ? "its pod is gone" : "its devices belong to another pod");
      if (revoked.ok()) {
        continue;
      }
      UpdateStatus(status, revoked);
    }
    stay.push_back(std::move(grants[index]));
  }
  grants = std::move(stay);
  return status;
}

std::vector<GrantRecord> GrantKeeper::records() const {
  MutexLock lock(mutex_);
  std::vector<GrantRecord> records;
  for (const KeptGrant& grant : grants_) {
    records.push_back(grant.record);
  }
  return records;
}

std::vector<std::string> GrantKeeper::ResourcesInUse() const {
  std::set<std::string> names(options_.resources.begin(), options_.resources.end());
  for (const GrantRecord& grant : records()) {
    names.insert(grant.resource);
  }
  return {names.begin(), names.end()};
}

std::vector<KeptGrant> GrantKeeper::Snapshot() const {
  MutexLock lock(mutex_);
  return grants_;
}

void GrantKeeper::Publish(std::vector<KeptGrant> grants) {
  MutexLock lock(mutex_);
  grants_ = std::move(grants);
}

absl::Status GrantKeeper::Save(std::span<const KeptGrant> grants) {
  std::vector<GrantRecord> records;
  for (const KeptGrant& grant : grants) {
    records.push_back(grant.record);
  }
  absl::Status status = file_.Save(records);
  unsaved_ = !status.ok();
  return status;
}

}  // namespace rnicd::kubernetes
