// Requests that need no peer: fast registrations, binds, invalidations; and the last step of every request.

#include "provider/networkdirect/fast/nd_fast_region.h"
#include "provider/networkdirect/fast/nd_window.h"
#include "provider/networkdirect/queue/nd_endpoint.h"

namespace rnicd::provider {
namespace {

// The fast region or window of a local request.
NdGrantHolder& HolderOf(const WorkRequest& request) {
  if (const auto* const work = std::get_if<FastRegisterWork>(&request.work); work != nullptr) {
    return static_cast<NdFastRegion&>(*work->region);
  }
  if (const auto* const bind = std::get_if<BindWork>(&request.work); bind != nullptr) {
    return static_cast<NdWindow&>(*bind->window);
  }
  const auto& invalidate = std::get<InvalidateWork>(request.work);
  if (invalidate.region != nullptr) {
    return static_cast<NdFastRegion&>(*invalidate.region);
  }
  return static_cast<NdWindow&>(*invalidate.window);
}

}  // namespace

BeginResult NdEndpoint::BeginLocal(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  NdGrantHolder& holder = HolderOf(request.work);
  if (std::holds_alternative<InvalidateWork>(request.work.work)) {
    // Without a connection the card invalidates nothing: the window is destroyed instead.
    prepared.invalidated = is_connected() ? holder.WindowOf(number_) : ComPtr<IND2MemoryWindow>();
    if (prepared.invalidated) {
      return PostLocal(request);
    }
    return BeginResult::Done(holder.Invalidate() ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest);
  }
  if (!prepared.grant->needs_bind()) {
    return BeginResult::Done(holder.Execute(request, prepared.token, number_));
  }
  return holder.BeginBind(request) ? PostLocal(request) : BeginResult::Done(NtStatus::kInvalidDeviceRequest);
}

BeginResult NdEndpoint::PostLocal(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  HRESULT result = kNdSuccess;
  {
    MutexLock lock(mutex_);
    const ComPtr<IND2QueuePair> pair = receiving_.link->queue_pair();
    if (failed_ || !pair) {
      // The engine cancels it, and Conclude undoes what has begun.
      return BeginResult::Done(NtStatus::kCancelled);
    }
    void* const context = ContextOf(request.serial);
    result = prepared.invalidated ? domain_->device().Observe(pair->Invalidate(context, prepared.invalidated.get(), 0))
                                  : prepared.own_grant()->Bind(*pair, context);
    if (!NdFailed(result)) {
      ++initiated_;
      ++at_card_;
      return BeginResult::Started();
    }
  }
  const auto type = prepared.invalidated ? Nd2RequestTypeInvalidate : Nd2RequestTypeBind;
  const CardOutcome outcome = OutcomeOf(result, type);
  return BeginResult::Done({.status = outcome.status, .peer_lost = outcome.peer_lost});
}

// The last step of a request, after the card or BeginLocal has finished.
NtStatus NdEndpoint::Conclude(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  if (prepared.grant != nullptr && prepared.grant->needs_bind()) {
    return HolderOf(request.work).ConcludeBind(request, prepared.token, number_, bound_);
  }
  const bool success = request.result.status == NtStatus::kSuccess;
  if (success && prepared.invalidated) {
    // The card has done it. The owner may have been closed meanwhile, which ends the registration as well.
    HolderOf(request.work).Invalidate();
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

}  // namespace rnicd::provider
