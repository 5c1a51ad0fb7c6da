// The runner: decides which request may begin, executes it here or on the card, and completes requests in queue order.

#include <utility>

#include "base/status.h"
#include "provider/api/operation_type_of.h"
#include "provider/verbs/verbs_endpoint.h"
#include "provider/verbs/verbs_status.h"
#include "provider/verbs/verbs_window.h"

namespace rnicd::provider {
namespace {

bool IsExecutedHere(const WorkRequest& request) {
  return std::holds_alternative<FastRegisterWork>(request.work) ||
         std::holds_alternative<InvalidateWork>(request.work) || std::holds_alternative<BindWork>(request.work);
}

bool InvalidatesAtPeer(const WorkRequest& request) {
  const auto* send = std::get_if<SendWork>(&request.work);
  return send != nullptr && send->invalidate.has_value();
}

}  // namespace

void VerbsEndpoint::Run() {
  {
    MutexLock lock(mutex_);
    if (running_) {
      run_again_ = true;
      return;
    }
    running_ = true;
  }
  RunLoop();
}

void VerbsEndpoint::RunLoop() {
  while (true) {
    while (Step()) {
    }
    MutexLock lock(mutex_);
    if (!run_again_) {
      running_ = false;
      changed_.NotifyAll();
      return;
    }
    run_again_ = false;
  }
}

VerbsEndpoint::Turn VerbsEndpoint::NextTurn() {
  if (slots_.empty()) {
    return Turn::kNothing;
  }
  Slot& first = slots_.front();
  if (state_ == QueuePairState::kError && first.stage == Stage::kQueued) {
    first.stage = Stage::kDone;
    first.status = NtStatus::kCancelled;
  }
  if (first.stage == Stage::kDone) {
    return Turn::kReport;
  }
  const bool can_begin = state_ != QueuePairState::kError && begun_ < slots_.size() && MayBegin(slots_[begun_]);
  return can_begin ? Turn::kBegin : Turn::kNothing;
}

// True when the request needs a further step here after the card has finished, which later requests must not overtake.
bool VerbsEndpoint::HoldsBack(const Slot& slot) const {
  const auto* read = std::get_if<ReadWork>(&slot.prepared.request.work);
  return IsExecutedHere(slot.prepared.request) || slot.awaits_invalidate_result ||
         (read != nullptr && read->local_invalidate);
}

bool VerbsEndpoint::MayBegin(const Slot& slot) const {
  if (disconnecting_ || (begun_ > 0 && HoldsBack(slots_[begun_ - 1]))) {
    return false;
  }
  return IsExecutedHere(slot.prepared.request) ? begun_ == 0 : !awaiting_peer_;
}

bool VerbsEndpoint::Step() {
  Slot* slot = nullptr;
  std::optional<Slot> done;
  {
    MutexLock lock(mutex_);
    switch (NextTurn()) {
      case Turn::kNothing:
        return false;
      case Turn::kReport:
        done = std::move(slots_.front());
        slots_.pop_front();
        begun_ -= begun_ > 0 ? 1 : 0;
        break;
      case Turn::kBegin:
        slot = &slots_[begun_];
        break;
    }
  }
  if (slot != nullptr) {
    return Begin(*slot);
  }
  done->status = Conclude(*done);
  if (done->status != NtStatus::kSuccess) {
    Fail();
  }
  Report(*std::move(done));
  return true;
}

bool VerbsEndpoint::Begin(Slot& slot) {
  bool is_first = false;
  bool peer_is_dead = false;
  {
    MutexLock lock(mutex_);
    is_first = begun_ == 0;
    peer_is_dead = peer_lost_ && peer_is_local_;
  }
  if (IsExecutedHere(slot.prepared.request)) {
    return BeginHere(slot);
  }
  if (peer_is_dead) {
    if (is_first) {
      Finish(slot, NtStatus::kIoTimeout);
    }
    return is_first;
  }
  return BeginOnCard(slot, is_first);
}

// A request that cannot be posted to the card fails in queue order: when no request is before it.
bool VerbsEndpoint::BeginOnCard(Slot& slot, bool is_first) {
  CardSend send;
  bool peer_is_rnicd = false;
  {
    MutexLock lock(mutex_);
    peer_is_rnicd = peer_is_rnicd_;
  }
  if (TranslateSend(*domain_, slot.prepared, peer_is_rnicd, send)) {
    PostToCard(slot, send.request);
    return true;
  }
  if (is_first) {
    Finish(slot, NtStatus::kAccessViolation);
  }
  return is_first;
}

void VerbsEndpoint::PostToCard(Slot& slot, ibv_send_wr& request) {
  bool removed = false;
  {
    MutexLock lock(mutex_);
    if (state_ == QueuePairState::kError) {
      return;
    }
    slot.stage = Stage::kPosted;
    slot.posted = true;
    slot.awaits_invalidate_result = peer_is_local_ && !peer_lost_ && InvalidatesAtPeer(slot.prepared.request);
    ++begun_;
    request.wr_id = slot.serial;
    const int error = api().PostSend(qp_, request);
    if (error == 0) {
      return;
    }
    removed = MeansRemoved(error);
    slot.stage = Stage::kDone;
    slot.status = removed ? NtStatus::kCancelled : NtStatus::kInternalError;
  }
  if (removed) {
    LosePeer();
  }
  Fail();
}

void VerbsEndpoint::Finish(Slot& slot, NtStatus status) {
  MutexLock lock(mutex_);
  slot.stage = Stage::kDone;
  slot.status = status;
  ++begun_;
}

bool VerbsEndpoint::BeginHere(Slot& slot) {
  PreparedRequest& prepared = slot.prepared;
  if (prepared.grant == nullptr || !prepared.grant->needs_bind()) {
    Finish(slot, Execute(slot));
    return true;
  }
  // The card must bind a window; Conclude does the rest.
  const auto* work = std::get_if<FastRegisterWork>(&prepared.request.work);
  const bool may_bind = work != nullptr ? static_cast<VerbsFastRegion&>(*work->region).CanRegister()
                                        : static_cast<VerbsWindow&>(*std::get<BindWork>(prepared.request.work).window)
                                              .BeginBind(std::get<BindWork>(prepared.request.work));
  if (!may_bind) {
    prepared.grant.reset();
    Finish(slot, NtStatus::kInvalidDeviceRequest);
    return true;
  }
  ibv_send_wr request = {};
  prepared.grant->FillBind(request);
  request.send_flags = IBV_SEND_SIGNALED;
  PostToCard(slot, request);
  return true;
}

NtStatus VerbsEndpoint::Execute(Slot& slot) {
  PreparedRequest& prepared = slot.prepared;
  bool done = false;
  if (auto* work = std::get_if<FastRegisterWork>(&prepared.request.work)) {
    done = static_cast<VerbsFastRegion&>(*work->region).Register(std::move(prepared.grant), std::move(work->backing));
  } else if (auto* bind = std::get_if<BindWork>(&prepared.request.work)) {
    VerbsWindow& window = static_cast<VerbsWindow&>(*bind->window);
    done = window.BeginBind(*bind) && window.Bind(std::move(prepared.grant), *bind, address_.qpn);
  } else {
    const auto& invalidate = std::get<InvalidateWork>(prepared.request.work);
    done = invalidate.region != nullptr ? static_cast<VerbsFastRegion&>(*invalidate.region).Invalidate()
                                        : static_cast<VerbsWindow&>(*invalidate.window).Invalidate();
  }
  return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

// The last step of a request, after the card or Execute has finished.
NtStatus VerbsEndpoint::Conclude(Slot& slot) {
  if (slot.prepared.grant != nullptr && slot.prepared.grant->needs_bind()) {
    return ConcludeBind(slot);
  }
  const auto* read = std::get_if<ReadWork>(&slot.prepared.request.work);
  const std::vector<ScatterGatherEntry>& entries = slot.prepared.request.entries;
  if (slot.status != NtStatus::kSuccess || read == nullptr || !read->local_invalidate || entries.empty() ||
      entries.front().host.data() != nullptr) {
    return slot.status;
  }
  const uint32_t token = entries.front().token.value;
  const std::optional<LocalKey> key = domain_->FindLocal(token);
  const std::shared_ptr<Invalidatable> owner = key.has_value() ? key->owner.lock() : nullptr;
  return owner != nullptr && owner->InvalidateToken(token, std::nullopt) ? NtStatus::kSuccess
                                                                         : NtStatus::kInvalidDeviceRequest;
}

NtStatus VerbsEndpoint::ConcludeBind(Slot& slot) {
  PreparedRequest& prepared = slot.prepared;
  const uint32_t token = prepared.grant->token();
  auto* const bind = std::get_if<BindWork>(&prepared.request.work);
  auto* const work = std::get_if<FastRegisterWork>(&prepared.request.work);
  const bool bound = slot.status == NtStatus::kSuccess;
  if (!bound && bind != nullptr && slot.posted) {
    static_cast<VerbsWindow&>(*bind->window).AbortBind(*bind);
  }
  if (!bound) {
    prepared.grant.reset();
    return slot.status;
  }
  std::shared_ptr<Invalidatable> owner;
  bool in_force = false;
  if (bind != nullptr) {
    const auto window = std::static_pointer_cast<VerbsWindow>(bind->window);
    in_force = window->Bind(std::move(prepared.grant), *bind, address_.qpn);
    owner = window;
  } else {
    const auto region = std::static_pointer_cast<VerbsFastRegion>(work->region);
    in_force = region->Register(std::move(prepared.grant), std::move(work->backing));
    owner = region;
  }
  if (in_force) {
    InsertBound(owner, token);
  }
  return in_force ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

void VerbsEndpoint::InsertBound(const std::shared_ptr<Invalidatable>& owner, uint32_t token) {
  MutexLock lock(mutex_);
  bound_[owner.get()] = {.owner = owner, .token = token};
  if (bound_.size() >= prune_bound_at_) {
    std::erase_if(bound_, [](const auto& entry) { return entry.second.owner.expired(); });
    prune_bound_at_ = 2 * bound_.size() + 64;
  }
}

void VerbsEndpoint::Report(Slot slot) {
  const WorkRequest& request = slot.prepared.request;
  const bool silent = slot.status == NtStatus::kSuccess && request.silent_success;
  const Completion completion{.request_context = request.request_context,
                              .type = TypeOf(request),
                              .status = slot.status,
                              .at_peer = slot.at_peer};
  // Release what the request holds first: the listener may reuse the memory as soon as it sees the completion.
  slot.prepared = {};
  if (!silent) {
    listener_.OnCompletion(WorkQueue::kInitiator, completion);
  }
}

}  // namespace rnicd::provider
