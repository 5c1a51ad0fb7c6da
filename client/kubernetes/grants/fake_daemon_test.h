#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/kubernetes/grants/daemon.h"

namespace rnicd::kubernetes {

// Keeps grants like the real daemon: names and ids are unique, a grant has either a door or a secret, and a renewal
// restores an id with its door or secret. Tests can make it unreachable, restart it without any grants, and make it
// refuse calls.
// Threads: safe.
class FakeDaemon final : public Daemon {
 public:
  struct Kept {
    v1::CreateGrantRequest request;
    uint64_t age_ms = 0;
    // Empty if it is bound to no pod.
    std::string pod_uid;
  };

  struct Quirks {
    // Revocations succeed without effect: a bug that tests must find.
    bool ignores_revocations = false;
    // The kernel shows it no process in a pod.
    bool sees_no_pods = false;
    // It is of a release without doors, and makes a secret instead.
    bool makes_no_doors = false;
  };

  absl::StatusOr<v1::GetStatusResponse> Status() override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    return status_;
  }

  absl::StatusOr<v1::CreateGrantResponse> CreateGrant(const v1::CreateGrantRequest& request) override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    const absl::Status refusal = create_refusal_;
    const auto named = refusals_by_name_.find(request.name());
    RNICD_RETURN_IF_ERROR(named == refusals_by_name_.end() ? refusal : named->second);
    for (const auto& [id, kept] : grants_) {
      if (kept.request.name() == request.name() || id == request.renewal().grant_id()) {
        return MakeError(ErrorReason::GRANT_NAME_TAKEN, "name");
      }
    }
    if (request.has_renewal() && request.door() != request.renewal().secret_sha256().empty()) {
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "renewal.secret_sha256");
    }
    v1::CreateGrantResponse made;
    made.set_tenant("grant/" + request.name());
    made.set_grant_id(request.has_renewal() ? request.renewal().grant_id() : ++last_id_);
    Kept& kept = grants_[made.grant_id()] = Kept{.request = request};
    kept.request.set_door(request.door() && !quirks_.makes_no_doors);
    if (kept.request.door()) {
      directories_.try_emplace(made.grant_id(), ++last_directory_);
      made.set_socket_dir("/doors/" + std::to_string(made.grant_id()));
    } else if (!request.has_renewal()) {
      made.set_secret("rnicd-grant-" + std::to_string(made.grant_id()));
    }
    if (std::exchange(lose_next_grant_, false)) {
      return TransportFailure(absl::StatusCode::kDeadlineExceeded, "the response was lost");
    }
    return made;
  }

  absl::StatusOr<std::vector<v1::GrantInfo>> Grants() override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    std::vector<v1::GrantInfo> infos;
    for (const auto& [id, kept] : grants_) {
      v1::GrantInfo& info = infos.emplace_back();
      info.set_grant_id(id);
      info.set_tenant("grant/" + kept.request.name());
      info.set_age_ms(kept.age_ms);
      info.set_pod_uid(kept.pod_uid);
      *info.mutable_limits() = kept.request.limits();
      if (kept.request.door()) {
        info.mutable_door()->set_socket_dir("/doors/" + std::to_string(id));
      }
      if (kept.request.has_devices()) {
        *info.mutable_devices() = kept.request.devices();
      }
    }
    return infos;
  }

  absl::StatusOr<uint64_t> RevokeGrant(uint64_t grant_id) override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    if (const auto refusal = revoke_refusals_.find(grant_id); refusal != revoke_refusals_.end()) {
      return refusal->second;
    }
    if (quirks_.ignores_revocations) {
      return uint64_t{0};
    }
    directories_.erase(grant_id);
    return grants_.erase(grant_id) > 0 ? absl::StatusOr<uint64_t>(0) : MakeError(ErrorReason::GRANT_NOT_FOUND);
  }

  absl::StatusOr<std::string> BindGrant(uint64_t grant_id, const std::string& pod_uid) override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    const auto found = grants_.find(grant_id);
    if (found == grants_.end()) {
      return MakeError(ErrorReason::GRANT_NOT_FOUND);
    }
    if (found->second.pod_uid.empty() && !quirks_.sees_no_pods) {
      found->second.pod_uid = pod_uid;
    }
    return found->second.pod_uid;
  }

  absl::Status SetPods(const v1::SetPodsRequest& request) override {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(Reach());
    pods_ = request;
    return absl::OkStatus();
  }

  // Makes the daemon unreachable, or reachable again.
  void SetAway(bool away) {
    MutexLock lock(mutex_);
    away_ = away;
  }
  // Makes the daemon unreachable after `calls` more calls.
  void GoAwayAfter(int calls) {
    MutexLock lock(mutex_);
    calls_left_ = calls;
  }
  // Acts as a restarted daemon: without grants and pods.
  void Restart() {
    MutexLock lock(mutex_);
    grants_.clear();
    pods_.reset();
  }
  void SetStatus(v1::GetStatusResponse status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }
  // An OK status ends the refusals.
  void RefuseCreate(absl::Status refusal) {
    MutexLock lock(mutex_);
    create_refusal_ = std::move(refusal);
  }
  void RefuseCreateOf(const std::string& name, absl::Status refusal) {
    MutexLock lock(mutex_);
    refusals_by_name_[name] = std::move(refusal);
  }
  void RefuseRevoke(uint64_t grant_id, absl::Status refusal) {
    MutexLock lock(mutex_);
    refusal.ok() ? void(revoke_refusals_.erase(grant_id)) : void(revoke_refusals_[grant_id] = std::move(refusal));
  }
  void SetQuirks(Quirks quirks) {
    MutexLock lock(mutex_);
    quirks_ = quirks;
  }
  // Makes the next CreateGrant fail although it creates the grant.
  void LoseNextGrant() {
    MutexLock lock(mutex_);
    lose_next_grant_ = true;
  }
  void SetAge(uint64_t grant_id, uint64_t age_ms) {
    MutexLock lock(mutex_);
    grants_.at(grant_id).age_ms = age_ms;
  }

  std::map<uint64_t, Kept> grants() const {
    MutexLock lock(mutex_);
    return grants_;
  }
  // Number of the directory that a container would mount now as the door of this grant, another one after a revocation
  // and the same after a restart; 0 if there is none.
  uint64_t DirectoryOf(uint64_t grant_id) const {
    MutexLock lock(mutex_);
    const auto found = directories_.find(grant_id);
    return found == directories_.end() ? 0 : found->second;
  }
  // Number of calls, including those made while the daemon was unreachable.
  uint64_t calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }
  // The last request of SetPods.
  std::optional<v1::SetPodsRequest> pods() const {
    MutexLock lock(mutex_);
    return pods_;
  }

 private:
  absl::Status Reach() RNICD_REQUIRES(mutex_) {
    ++calls_;
    if (calls_left_.has_value() && (*calls_left_)-- <= 0) {
      away_ = true;
    }
    return away_ ? TransportFailure(absl::StatusCode::kUnavailable, "nobody listens") : absl::OkStatus();
  }

  mutable Mutex mutex_;
  uint64_t calls_ RNICD_GUARDED_BY(mutex_) = 0;
  bool away_ RNICD_GUARDED_BY(mutex_) = false;
  bool lose_next_grant_ RNICD_GUARDED_BY(mutex_) = false;
  Quirks quirks_ RNICD_GUARDED_BY(mutex_);
  std::optional<int> calls_left_ RNICD_GUARDED_BY(mutex_);
  uint64_t last_id_ RNICD_GUARDED_BY(mutex_) = 0;
  uint64_t last_directory_ RNICD_GUARDED_BY(mutex_) = 0;
  v1::GetStatusResponse status_ RNICD_GUARDED_BY(mutex_);
  absl::Status create_refusal_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> refusals_by_name_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> revoke_refusals_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> directories_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, Kept> grants_ RNICD_GUARDED_BY(mutex_);
  std::optional<v1::SetPodsRequest> pods_ RNICD_GUARDED_BY(mutex_);
};

// Whether a process at this grant's door could open a session, in the right pod if the grant is bound.
inline bool Accepts(const FakeDaemon& daemon, uint64_t grant_id) { return daemon.grants().contains(grant_id); }

// Whether a process of this pod could open a session at the grant's door; the UID of one outside pods is empty.
inline bool AcceptsFrom(const FakeDaemon& daemon, const std::string& pod_uid, uint64_t grant_id) {
  const std::map<uint64_t, FakeDaemon::Kept> grants = daemon.grants();
  const auto found = grants.find(grant_id);
  return found != grants.end() && (found->second.pod_uid.empty() || found->second.pod_uid == pod_uid);
}

}  // namespace rnicd::kubernetes
