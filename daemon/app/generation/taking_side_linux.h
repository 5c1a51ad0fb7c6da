#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/app/generation/succession.h"
#include "daemon/core/generation/inherited.h"
#include "daemon/handover/predecessor.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/handed_door.h"

namespace rnicd::app {

// What this generation has of the older one: its use, the way to it, and word of its end.
// Lifetime: outlives the front door; Stop before what hears of it ends.
// Threads:  Route, processes, ended from any; the rest from one.
class TakingSide final : private handover::TakingDaemon {
 public:
  struct Taken {
    transport::HandedDoor door;
    UniqueFd handover_listener;
    UniqueFd handover_lock;
    UniqueFd pages;
  };

  // `clock` outlives it.
  TakingSide(std::shared_ptr<handover::Predecessor> predecessor, const SuccessionParts& parts, const Clock& clock)
      : predecessor_(std::move(predecessor)), parts_(parts), clock_(clock), inherited_(parts.node) {}

  // Asks for everything, and gives core what it inherits.
  absl::StatusOr<Taken> Take();
  absl::Status Commit() { return predecessor_->Commit(); }
  struct Listener {
    // The last session of a process has ended there.
    std::function<void(const core::ProcessKey&)> on_process_ended;
    // A connection that was routed, and whose process has no session there any more.
    std::function<void(const v1::HandoverFile&, UniqueSocket)> on_handed_back;
    std::function<void()> on_ended;
  };
  // Hears of the older one.
  absl::Status Serve(Listener listener);
  void Stop() { predecessor_->Stop(); }

  // Passes the connection on, if the older one has sessions of its process.
  bool Route(const transport::AdmittedConnection& connection);
  void NarrowGrant(GrantId grant, const std::string& pod_uid) { predecessor_->NarrowGrant(grant, pod_uid); }

  // While a newer generation counts what the older one may hold, that gets no more here.
  void SetFrozen(bool frozen) {
    MutexLock lock(mutex_);
    frozen_ = frozen;
  }

  uint32_t generation() const { return generation_; }
  // Also those that are older still.
  bool ended() const { return ended_.load() || predecessor_->has_ended(); }
  std::vector<UniqueFd> Processes() const { return predecessor_->Processes(); }
  // It, and those that are older still, as it last reported them.
  std::vector<core::OlderGeneration> generations() const {
    MutexLock lock(mutex_);
    return generations_;
  }
  const core::Inherited& inherited() const { return inherited_; }

 private:
  std::string OwnCounters() override { return parts_.callbacks.own_counters(); }
  void OnProcessEnded(const v1::HandoverProcess& process) override;
  v1::HandoverUse Grow(const v1::HandoverUse& wanted) override;
  void Shrink(const v1::HandoverUse& shrunk) override;
  void OnHandedBack(const v1::HandoverFile& listener, UniqueSocket socket) override {
    listener_.on_handed_back(listener, std::move(socket));
  }
  void OnCounters(const std::string& text, const v1::HandoverCounters& generations) override;
  void OnPredecessorEnded() override;

  const std::shared_ptr<handover::Predecessor> predecessor_;
  const SuccessionParts parts_;
  const Clock& clock_;
  core::Inherited inherited_;
  uint32_t generation_ = 0;
  Listener listener_;
  std::atomic<bool> ended_{false};
  mutable Mutex mutex_;
  std::vector<core::OlderGeneration> generations_ RNICD_GUARDED_BY(mutex_);
  bool frozen_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::app
