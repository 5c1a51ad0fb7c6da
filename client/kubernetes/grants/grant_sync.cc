#include "client/kubernetes/grants/grant_sync.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/pod_uid.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/grants/grant_request.h"

namespace rnicd::kubernetes {
namespace {

// The UIDs of their pods, by grant.
std::map<uint64_t, std::string> PodUids(std::span<const v1::GrantInfo> grants) {
  std::map<uint64_t, std::string> uids;
  for (const v1::GrantInfo& info : grants) {
    uids.emplace(info.grant_id(), info.pod_uid());
  }
  return uids;
}

std::set<std::string> DevicesOf(const GrantRecord& record) {
  return {record.device_ids.begin(), record.device_ids.end()};
}

// The daemon would refuse this request on every retry.
bool IsPermanentRefusal(const absl::Status& status) {
  return FailedWith(status, ErrorReason::FIELD_OUT_OF_RANGE) || FailedWith(status, ErrorReason::GRANT_NAME_TAKEN);
}

// A container can have started with the grant, and its pod is known.
bool IsToBeBound(const KeptGrant& grant) {
  return !grant.is_bound && !grant.is_withheld && !grant.record.suspended && !grant.is_unused &&
         IsPodUid(grant.record.pod_uid);
}

}  // namespace

void UpdateStatus(absl::Status& status, const absl::Status& next) {
  if (status.ok() || (!IsTransportFailure(status) && IsTransportFailure(next))) {
    status = next;
  }
}

bool SharesDevice(const GrantRecord& one, const GrantRecord& other) {
  const std::set<std::string> ids = DevicesOf(one);
  return one.resource == other.resource && std::any_of(other.device_ids.begin(), other.device_ids.end(),
                                                       [&](const std::string& id) { return ids.contains(id); });
}

bool SameDevices(const GrantRecord& one, const GrantRecord& other) {
  return one.resource == other.resource && DevicesOf(one) == DevicesOf(other);
}

absl::Status GrantSync::Revoke(const GrantRecord& record, std::string_view reason) const {
  absl::Status revoked = daemon_.RevokeGrant(record.grant_id).status();
  if (!revoked.ok() && !FailedWith(revoked, ErrorReason::GRANT_NOT_FOUND)) {
    return revoked;
  }
  logger_.Info("grant revoked",
               {{"grant", record.grant_id}, {"name", record.name}, {"pod", record.pod}, {"why", reason}});
  return absl::OkStatus();
}

absl::Status GrantSync::RevokeSuspended(std::span<const KeptGrant> grants, std::span<const v1::GrantInfo> known) const {
  const std::map<uint64_t, std::string> known_uids = PodUids(known);
  absl::Status status;
  for (const KeptGrant& grant : grants) {
    if (grant.record.suspended && known_uids.contains(grant.record.grant_id) && !IsTransportFailure(status)) {
      UpdateStatus(status, Revoke(grant.record, "another grant for its devices is in use"));
    }
  }
  return status;
}

absl::Status GrantSync::RenewLost(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known,
                                  const OfferedBytes& offered) const {
  const std::map<uint64_t, std::string> known_uids = PodUids(known);
  absl::Status status;
  std::vector<KeptGrant> stay;
  for (KeptGrant& grant : grants) {
    const auto uid = known_uids.find(grant.record.grant_id);
    const bool is_known = uid != known_uids.end();
    grant.is_bound = is_known && !uid->second.empty();
    grant.is_withheld = grant.is_withheld && !is_known;
    const bool is_lost = !is_known && !grant.record.suspended && !IsTransportFailure(status);
    if (!is_lost || !RenewOrForget(grant, offered, status)) {
      stay.push_back(std::move(grant));
    }
  }
  grants = std::move(stay);
  return status;
}

bool GrantSync::RenewOrForget(KeptGrant& grant, const OfferedBytes& offered, absl::Status& status) const {
  const GrantRecord& record = grant.record;
  const uint64_t bytes = record.limits.pinned_bytes();
  const uint64_t left = std::min(bytes, offered ? offered(record).value_or(bytes) : bytes);
  // 0 as a limit would mean no limit.
  const bool is_withheld = left == 0 && bytes != 0;
  if (!std::exchange(grant.is_withheld, is_withheld) && is_withheld) {
    logger_.Warning("grant not made again: the node offers none of its devices any more",
                    {{"grant", record.grant_id}, {"name", record.name}, {"pod", record.pod}, {"bytes", bytes}});
  }
  if (is_withheld) {
    return false;
  }
  const bool can_be_used = record.has_door || !record.secret_sha256.empty();
  const absl::Status made = can_be_used ? daemon_.CreateGrant(RenewalOf(record, left, connections_)).status()
                                        : absl::NotFoundError("its secret is not known");
  if (made.ok()) {
    logger_.Info("grant made again", {{"grant", record.grant_id}, {"name", record.name}});
    if (left < bytes) {
      logger_.Warning("the grant is for less than before: the node offers only some of its devices now",
                      {{"grant", record.grant_id}, {"pod", record.pod}, {"bytes", left}, {"before", bytes}});
    }
    return false;
  }
  if (!can_be_used || IsPermanentRefusal(made)) {
    logger_.Warning(
        "grant forgotten: it cannot be made again",
        {{"grant", record.grant_id}, {"name", record.name}, {"pod", record.pod}, {"why", std::string(made.message())}});
    return true;
  }
  UpdateStatus(status, made);
  return false;
}

absl::Status GrantSync::Bind(std::vector<KeptGrant>& grants) const {
  absl::Status status;
  for (KeptGrant& grant : grants) {
    if (!IsToBeBound(grant)) {
      continue;
    }
    const absl::StatusOr<std::string> bound = daemon_.BindGrant(grant.record.grant_id, grant.record.pod_uid);
    if (bound.ok() && bound->empty()) {
      // It has seen no process in a pod, so it would bind no other grant either.
      return status;
    }
    grant.is_bound = bound.ok();
    if (grant.is_bound) {
      logger_.Info("grant bound to its pod", {{"grant", grant.record.grant_id}, {"pod_uid", *bound}});
    } else if (IsTransportFailure(bound.status())) {
      return bound.status();
    } else if (!FailedWith(bound.status(), ErrorReason::GRANT_NOT_FOUND)) {
      // A grant that the daemon does not have is bound when it has been renewed.
      UpdateStatus(status, bound.status());
    }
  }
  return status;
}

absl::Status GrantSync::Adopt(std::vector<KeptGrant>& grants, std::span<const v1::GrantInfo> known,
                              std::span<const std::string> resources, int64_t now_ms, bool& adopted) const {
  std::set<uint64_t> ids;
  for (const KeptGrant& grant : grants) {
    ids.insert(grant.record.grant_id);
  }
  absl::Status status;
  for (const v1::GrantInfo& info : known) {
    const bool ours = std::count(resources.begin(), resources.end(), info.devices().resource_name()) > 0;
    if (!ours || info.devices().device_ids().empty() || !ids.insert(info.grant_id()).second) {
      continue;
    }
    GrantRecord record = RecordOf(info, now_ms);
    const bool in_use = std::any_of(grants.begin(), grants.end(), [&](const KeptGrant& grant) {
      return !grant.record.suspended && SharesDevice(grant.record, record);
    });
    if (in_use) {
      if (!IsTransportFailure(status)) {
        UpdateStatus(status, Revoke(record, "no container got it"));
      }
      continue;
    }
    logger_.Info("grant of the daemon taken over", {{"grant", record.grant_id}, {"name", record.name}});
    const auto later = std::find_if(grants.begin(), grants.end(),
                                    [&](const KeptGrant& grant) { return grant.record.made_ms > record.made_ms; });
    grants.insert(later, KeptGrant{.record = std::move(record), .fresh = true});
    adopted = true;
  }
  return status;
}

}  // namespace rnicd::kubernetes
