#include "client/kubernetes/grant_keeper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/secret.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/grant_request.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;

// Times before 1970 come from clocks that are not set.
int64_t UnixMs(WallTime time) {
  return std::max<int64_t>(0, std::chrono::floor<milliseconds>(time.time_since_epoch()).count());
}

std::string DigestOf(std::string_view secret) {
  const SecretDigest digest = SecretDigest::Of(secret);
  return std::string(digest.bytes().begin(), digest.bytes().end());
}

// The daemon would refuse this request on every retry.
bool IsPermanentRefusal(const absl::Status& status) {
  return FailedWith(status, ErrorReason::FIELD_OUT_OF_RANGE) || FailedWith(status, ErrorReason::GRANT_NAME_TAKEN);
}

std::vector<std::string> Sorted(std::span<const std::string> ids) {
  std::vector<std::string> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

GrantKeeper::GrantKeeper(Daemon& daemon, GrantFile& file, RandomSource& random, const log::Logger& logger,
                         GrantOptions options)
    : daemon_(daemon), file_(file), random_(random), logger_(logger), options_(std::move(options)) {}

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

absl::StatusOr<std::string> GrantKeeper::Allocate(const ResourceSpec& resource,
                                                  const std::vector<std::string>& device_ids, WallTime now) {
  RNICD_ASSIGN_OR_RETURN(v1::ResourceLimits limits,
                         LimitsFor(options_.limits, resource, device_ids.size(), options_.registered_times));
  GrantRecord record{.name = GrantNameFor(resource.name, device_ids.front(), random_.Next()),
                     .resource = resource.name,
                     .device_ids = device_ids,
                     .limits = std::move(limits),
                     .made_ms = UnixMs(now)};
  MutexLock change(change_);
  RNICD_ASSIGN_OR_RETURN(v1::CreateGrantResponse made, daemon_.CreateGrant(RequestFor(record)));
  record.grant_id = made.grant_id();
  record.secret_sha256 = DigestOf(made.secret());
  std::vector<KeptGrant> grants = Snapshot();
  grants.push_back(KeptGrant{.record = std::move(record), .fresh = true});
  if (absl::Status saved = Save(grants); !saved.ok()) {
    // If this fails, too, the grant is adopted from the daemon's list and revoked there for lack of a holder.
    (void)daemon_.RevokeGrant(made.grant_id());
    return saved;
  }
  Publish(std::move(grants));
  return std::move(*made.mutable_secret());
}

absl::Status GrantKeeper::Renew(WallTime now) {
  MutexLock change(change_);
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::GrantInfo> known, daemon_.Grants());
  std::vector<KeptGrant> grants = Snapshot();
  const size_t before = grants.size();
  absl::Status status = RenewLost(grants, known);
  const bool removed = grants.size() != before;
  const bool adopted = Adopt(grants, known, now);
  if (removed || adopted || unsaved_) {
    status.Update(Save(grants));
  }
  Publish(std::move(grants));
  return status;
}

absl::Status GrantKeeper::RenewLost(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known) const {
  std::set<uint64_t> known_ids;
  for (const v1::GrantInfo& info : known) {
    known_ids.insert(info.grant_id());
  }
  absl::Status status;
  const auto is_lost = [&](const KeptGrant& grant) {
    const GrantRecord& record = grant.record;
    if (known_ids.contains(record.grant_id) || IsTransportFailure(status)) {
      return false;
    }
    const absl::Status made = record.secret_sha256.empty() ? absl::NotFoundError("its secret is not known")
                                                           : daemon_.CreateGrant(RenewalOf(record)).status();
    if (made.ok()) {
      logger_.Info("grant made again", {{"grant", record.grant_id}, {"name", record.name}});
      return false;
    }
    if (record.secret_sha256.empty() || IsPermanentRefusal(made)) {
      logger_.Warning("grant forgotten: it cannot be made again", {{"grant", record.grant_id},
                                                                   {"name", record.name},
                                                                   {"pod", record.pod},
                                                                   {"why", std::string(made.message())}});
      return true;
    }
    // A transport failure takes precedence over an earlier refusal.
    status = status.ok() || IsTransportFailure(made) ? made : status;
    return false;
  };
  std::erase_if(grants, is_lost);
  return status;
}

bool GrantKeeper::Adopt(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known, WallTime now) const {
  std::set<uint64_t> ids;
  for (const KeptGrant& grant : grants) {
    ids.insert(grant.record.grant_id);
  }
  bool adopted = false;
  for (const v1::GrantInfo& info : known) {
    const bool ours = std::count(options_.resources.begin(), options_.resources.end(), info.devices().resource_name());
    if (!ours || info.devices().device_ids().empty() || !ids.insert(info.grant_id()).second) {
      continue;
    }
    GrantRecord record = RecordOf(info, UnixMs(now));
    logger_.Info("grant of the daemon taken over", {{"grant", record.grant_id}, {"name", record.name}});
    const auto later = std::find_if(grants.begin(), grants.end(),
                                    [&](const KeptGrant& grant) { return grant.record.made_ms > record.made_ms; });
    grants.insert(later, KeptGrant{.record = std::move(record), .fresh = true});
    adopted = true;
  }
  return adopted;
}

absl::Status GrantKeeper::Reconcile(std::span<const Holder> holders, WallTime now) {
  MutexLock change(change_);
  std::vector<KeptGrant> grants = Snapshot();
  const size_t before = grants.size();
  const ReviewResult result =
      Review(grants, holders, SinceLastReview(now), {.grace = options_.grace, .same_pod = options_.same_pod});
  absl::Status status = Revoke(grants, result.verdicts);
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
    const GrantRecord& record = grants[index].record;
    if (verdicts[index] != Verdict::kKeep && !IsTransportFailure(status)) {
      const absl::Status revoked = daemon_.RevokeGrant(record.grant_id).status();
      if (revoked.ok() || FailedWith(revoked, ErrorReason::GRANT_NOT_FOUND)) {
        logger_.Info("grant revoked",
                     {{"grant", record.grant_id},
                      {"name", record.name},
                      {"pod", record.pod},
                      {"why", verdicts[index] == Verdict::kUnheld ? "nobody holds its devices"
                                                                  : "its devices were given to another pod"}});
        continue;
      }
      status = status.ok() || IsTransportFailure(revoked) ? revoked : status;
    }
    stay.push_back(std::move(grants[index]));
  }
  grants = std::move(stay);
  return status;
}

bool GrantKeeper::Covers(const std::string& resource, std::span<const std::string> device_ids) const {
  const std::vector<std::string> wanted = Sorted(device_ids);
  MutexLock lock(mutex_);
  return std::any_of(grants_.begin(), grants_.end(), [&](const KeptGrant& grant) {
    return grant.record.resource == resource && Sorted(grant.record.device_ids) == wanted;
  });
}

std::vector<GrantRecord> GrantKeeper::records() const {
  MutexLock lock(mutex_);
  std::vector<GrantRecord> records;
  for (const KeptGrant& grant : grants_) {
    records.push_back(grant.record);
  }
  return records;
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
