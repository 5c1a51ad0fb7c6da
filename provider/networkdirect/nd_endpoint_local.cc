// Requests that need no peer: fast registrations, binds, invalidations; and the last step of every request.

#include <utility>

#include "provider/networkdirect/nd_endpoint.h"
#include "provider/networkdirect/nd_fast_region.h"
#include "provider/networkdirect/nd_window.h"

namespace rnicd::provider {
namespace {

// The window that the invalidation ends, if the queue pair has bound one.
ComPtr<IND2MemoryWindow> WindowOf(const InvalidateWork& work, uint64_t queue_pair) {
  return work.region != nullptr ? static_cast<NdFastRegion&>(*work.region).WindowOf(queue_pair)
                                : static_cast<NdWindow&>(*work.window).WindowOf(queue_pair);
}

bool Invalidate(const InvalidateWork& work) {
  return work.region != nullptr ? static_cast<NdFastRegion&>(*work.region).Invalidate()
                                : static_cast<NdWindow&>(*work.window).Invalidate();
}

}  // namespace

BeginResult NdEndpoint::BeginLocal(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  if (const auto* invalidate = std::get_if<InvalidateWork>(&request.work.work)) {
    // Without a connection the card invalidates nothing: the window is destroyed instead.
    prepared.invalidated = is_connected() ? WindowOf(*invalidate, number_) : ComPtr<IND2MemoryWindow>();
    return prepared.invalidated ? PostLocal(request) : BeginResult::Done(Execute(request));
  }
  if (!prepared.grant->needs_bind()) {
    return BeginResult::Done(Execute(request));
  }
  bool may_bind = false;
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    may_bind = static_cast<NdFastRegion&>(*work->region).CanRegister();
  } else {
    const auto& bind = std::get<BindWork>(request.work.work);
    may_bind = prepared.bind_begun = static_cast<NdWindow&>(*bind.window).BeginBind(bind);
  }
  if (!may_bind) {
    prepared.grant.reset();
    return BeginResult::Done(NtStatus::kInvalidDeviceRequest);
  }
  return PostLocal(request);
}

BeginResult NdEndpoint::PostLocal(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  HRESULT result = kNdSuccess;
  {
    MutexLock lock(mutex_);
    const ComPtr<IND2QueuePair> pair = receive_link_->queue_pair();
    if (failed_ || !pair) {
      // The engine cancels it, and Conclude undoes what has begun.
      return BeginResult::Done(NtStatus::kCancelled);
    }
    void* const context = ContextOf(request.serial);
    result = prepared.invalidated ? domain_->device().Observe(pair->Invalidate(context, prepared.invalidated.get(), 0))
                                  : prepared.grant->Bind(*pair, context);
    if (!NdFailed(result)) {
      ++initiated_;
      ++at_card_;
      return BeginResult::Started();
    }
  }
  const auto type = prepared.invalidated ? Nd2RequestTypeInvalidate : Nd2RequestTypeBind;
  const CardOutcome outcome = OutcomeOf(result, type);
  if (outcome.peer_lost) {
    engine().LosePeer();
  }
  return BeginResult::Done(outcome.status);
}

NtStatus NdEndpoint::Execute(EngineRequest& request) const {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  bool done = false;
  if (auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    done = static_cast<NdFastRegion&>(*work->region)
               .Register(std::move(prepared.grant), prepared.Keep(), /*queue_pair=*/0, std::move(work->backing));
  } else if (auto* bind = std::get_if<BindWork>(&request.work.work)) {
    auto& window = static_cast<NdWindow&>(*bind->window);
    done = window.BeginBind(*bind) && window.Bind(std::move(prepared.grant), prepared.Keep(), number_, *bind);
  } else {
    done = Invalidate(std::get<InvalidateWork>(request.work.work));
  }
  return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

// The last step of a request, after the card or Execute has finished.
NtStatus NdEndpoint::Conclude(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  if (prepared.grant != nullptr && prepared.grant->needs_bind()) {
    return ConcludeBind(request);
  }
  const bool success = request.result.status == NtStatus::kSuccess;
  if (success && prepared.invalidated) {
    // The card has done it. The owner may have been closed meanwhile, which ends the registration as well.
    Invalidate(std::get<InvalidateWork>(request.work.work));
  }
  return success && request.IsRead() ? ConcludeRead(request) : request.result.status;
}

NtStatus NdEndpoint::ConcludeRead(EngineRequest& request) {
  const std::optional<LocalToken> token = TokenToInvalidate(request.work);
  if (!token.has_value()) {
    return NtStatus::kSuccess;
  }
  const std::shared_ptr<Invalidatable> owner = domain_->local_tokens().Find(token->value).owner.lock();
  return owner != nullptr && owner->InvalidateToken(token->value, std::nullopt) ? NtStatus::kSuccess
                                                                                : NtStatus::kInvalidDeviceRequest;
}

NtStatus NdEndpoint::ConcludeBind(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  auto* const bind = std::get_if<BindWork>(&request.work.work);
  auto* const work = std::get_if<FastRegisterWork>(&request.work.work);
  if (request.result.status != NtStatus::kSuccess) {
    if (prepared.bind_begun) {
      static_cast<NdWindow&>(*bind->window).AbortBind(*bind);
    }
    prepared.grant.reset();
    return request.result.status;
  }
  const RemoteToken token = prepared.Keep();
  std::shared_ptr<Invalidatable> owner;
  bool in_force = false;
  if (bind != nullptr) {
    const auto window = std::static_pointer_cast<NdWindow>(bind->window);
    in_force = window->Bind(std::move(prepared.grant), token, number_, *bind);
    owner = window;
  } else {
    const auto region = std::static_pointer_cast<NdFastRegion>(work->region);
    in_force = region->Register(std::move(prepared.grant), token, number_, std::move(work->backing));
    owner = region;
  }
  if (in_force) {
    bound_.Insert(owner, token.value);
  }
  return in_force ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

}  // namespace rnicd::provider
