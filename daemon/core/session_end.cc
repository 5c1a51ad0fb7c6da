// How a session ends: the part of Session that runs once.

#include "base/status.h"
#include "daemon/core/session.h"

namespace rnicd::core {
namespace {

// The socket of a dying process may close a moment before the process counts as exited.
constexpr std::chrono::milliseconds kExitGrace{5};

EndCause Refine(EndCause cause, const Caller& owner) {
  const bool died =
      cause == EndCause::kConnectionLost && owner.handle != nullptr && owner.handle->HasExited(kExitGrace);
  return died ? EndCause::kProcessExited : cause;
}

// Closes every object; one that was already closing completes when its last child is closed.
template <typename Objects>
void CloseAll(const Objects& objects) {
  for (const auto& [id, object] : objects) {
    (void)object->Close(nullptr);
  }
}

}  // namespace

absl::StatusOr<Session::Guard> Session::Begin() {
  MutexLock lock(life_mutex_);
  if (ending_) {
    return MakeError(ErrorReason::SESSION_ENDING);
  }
  ++running_;
  return Guard(shared_from_this());
}

void Session::EndGuard() {
  MutexLock lock(life_mutex_);
  --running_;
  if (running_ == 0 && ending_) {
    node_.reapers.PostFor(tenant_->number(), [self = shared_from_this()] { self->TearDown(); });
  }
}

bool Session::ending() const {
  MutexLock lock(life_mutex_);
  return ending_;
}

bool Session::ended() const {
  MutexLock lock(life_mutex_);
  return ended_;
}

EndCause Session::end_cause() const {
  MutexLock lock(life_mutex_);
  return cause_;
}

void Session::End(EndCause cause, std::function<void(const Reclaimed&)> on_ended) {
  Reclaimed reclaimed;
  {
    MutexLock lock(life_mutex_);
    if (!ended_) {
      on_ended_.push_back(std::move(on_ended));
      if (!ending_) {
        ending_ = true;
        cause_ = cause;
        // Held until the queue is cancelled; the last request to finish then starts the teardown.
        ++running_;
        auto held = std::make_shared<Guard>(Guard(shared_from_this()));
        node_.reapers.PostFor(tenant_->number(), [this, held = std::move(held)] { CancelQueued(); });
      }
      return;
    }
    reclaimed = reclaimed_;
  }
  on_ended(reclaimed);
}

// On a reaper, because each job reports to its caller, and because a large region whose close was queued is closed
// here.
void Session::CancelQueued() {
  for (Executor* executor : {&node_.workers, &node_.populators}) {
    for (const std::function<void()>& job : executor->Withdraw(job_owner())) {
      job();
    }
  }
}

void Session::TearDown() {
  EndCause cause = EndCause::kClosed;
  {
    MutexLock lock(life_mutex_);
    cause = cause_;
  }
  cause = Refine(cause, owner_);
  const Reclaimed reclaimed = Reclaim(cause);
  charge_.Refund();
  events_.Finish(SessionEnding{cause});
  node_.observer.Report(SessionEnded{.id = id_, .caller = owner_, .cause = cause, .reclaimed = reclaimed});
  node_.observer.Report(Decision{.what = "session.end",
                                 .caller = &owner_,
                                 .tenant = tenant_->name(),
                                 .workload = tenant_->workload(),
                                 .session = id_,
                                 .note = EndCauseName(cause)});
  std::vector<std::function<void(const Reclaimed&)>> on_ended;
  {
    MutexLock lock(life_mutex_);
    ended_ = true;
    cause_ = cause;
    reclaimed_ = reclaimed;
    on_ended.swap(on_ended_);
  }
  for (const auto& callback : on_ended) {
    callback(reclaimed);
  }
}

// Children before parents: queue pairs first, so that no transfer is left; windows before the regions they are bound
// to; and the memory when nothing uses it any more.
Reclaimed Session::Reclaim(EndCause cause) {
  for (const auto& [id, queue] : completion_queues_.All()) {
    queue->EndWaits(MakeError(ErrorReason::SESSION_ENDING));
  }
  Reclaimed reclaimed;
  reclaimed.pinned_bytes = ledger_->used(Resource::kPinnedBytes);
  reclaimed.memory_bytes = ledger_->used(Resource::kMemoryBytes);
  const auto regions = regions_.TakeAll();
  reclaimed.regions = regions.size();
  for (const auto& [id, region] : regions) {
    region->SetCloseCause(EndCauseName(cause));
  }
  CloseAll(queue_pairs_.TakeAll());
  CloseAll(windows_.TakeAll());
  CloseAll(regions);
  for (const auto& [id, mapping] : mappings_.TakeAll()) {
    addresses_.Remove(*mapping);
  }
  CloseAll(completion_queues_.All());
  CloseAll(domains_.All());
  CloseAll(adapters_.All());
  for (const auto& [id, region] : regions) {
    reclaimed.failures += region->deregister_failed() ? 1 : 0;
  }
  for (const auto& [id, memory] : memories_.TakeAll()) {
    reclaimed.failures += memory->Release().ok() ? 0 : 1;
  }
  completion_queues_.TakeAll();
  domains_.TakeAll();
  adapters_.TakeAll();
  return reclaimed;
}

}  // namespace rnicd::core
