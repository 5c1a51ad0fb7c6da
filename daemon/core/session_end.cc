// The life of a session: its guards, and its end, which runs once.

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

SessionGuard::~SessionGuard() {
  if (session_ != nullptr) {
    session_->EndGuard();
  }
}

SessionAdapters& SessionGuard::adapters() const { return session_->adapters_; }
SessionDomains& SessionGuard::domains() const { return session_->domains_; }
SessionMemory& SessionGuard::memory() const { return session_->memory_; }
SessionRegions& SessionGuard::regions() const { return session_->regions_; }
SessionMappings& SessionGuard::mappings() const { return session_->mappings_; }
SessionQueues& SessionGuard::queues() const { return session_->queues_; }
SessionPairs& SessionGuard::pairs() const { return session_->pairs_; }
SessionRequests& SessionGuard::requests() const { return session_->requests_; }
SessionRings& SessionGuard::rings() const { return session_->rings_; }
SessionWindows& SessionGuard::windows() const { return session_->windows_; }

absl::StatusOr<SessionGuard> Session::Begin() {
  MutexLock lock(life_mutex_);
  if (ending_) {
    return MakeError(ErrorReason::SESSION_ENDING);
  }
  ++running_;
  return SessionGuard(shared_from_this());
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
        auto held = std::make_shared<SessionGuard>(SessionGuard(shared_from_this()));
        node_.reapers.PostFor(tenant_->number(), [this, held = std::move(held)] {
          requests_.CancelQueued();
          memory_.CancelSeals();
        });
      }
      return;
    }
    reclaimed = reclaimed_;
  }
  on_ended(reclaimed);
}

void Session::TearDown() {
  EndCause cause = EndCause::kClosed;
  {
    MutexLock lock(life_mutex_);
    cause = cause_;
  }
  cause = Refine(cause, owner_);
  const Reclaimed reclaimed = Reclaim(cause);
  // Told before the session's charge is given back: who sees that nothing is held sees these counts too.
  node_.observer.Report(SessionEnded{.id = id_, .caller = owner_, .cause = cause, .reclaimed = reclaimed});
  node_.observer.Report(Decision{.what = "session.end",
                                 .caller = &owner_,
                                 .tenant = tenant_->name(),
                                 .workload = tenant_->workload(),
                                 .session = id_,
                                 .note = EndCauseName(cause)});
  charge_.Refund();
  events_.Finish(SessionEnding{cause});
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

// Children before parents: rings first, so that nothing new begins; then queue pairs, so that no transfer is left;
// windows before the regions they are bound to; and the memory when nothing uses it any more.
Reclaimed Session::Reclaim(EndCause cause) {
  rings_.CloseAll();
  for (const auto& [id, queue] : queues_.table().All()) {
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
  CloseAll(pairs_.TakeAll());
  CloseAll(windows_.TakeAll());
  CloseAll(regions);
  mappings_.ReleaseAll();
  CloseAll(queues_.table().All());
  CloseAll(domains_.table().All());
  CloseAll(adapters_.table().All());
  for (const auto& [id, region] : regions) {
    reclaimed.failures += region->deregister_failed() ? 1 : 0;
  }
  for (const auto& [id, memory] : memory_.TakeAll()) {
    reclaimed.failures += memory->Release().ok() ? 0 : 1;
  }
  queues_.TakeAll();
  domains_.TakeAll();
  adapters_.TakeAll();
  return reclaimed;
}

}  // namespace rnicd::core
