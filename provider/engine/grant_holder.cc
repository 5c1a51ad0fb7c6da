#include "provider/engine/grant_holder.h"

#include <utility>

#include "provider/engine/engine_memory_region.h"

namespace rnicd::provider {
namespace {

// Null for a FastRegisterWork.
EngineMemoryRegion* RegionOf(const WorkRequest& request) {
  const auto* const bind = std::get_if<BindWork>(&request.work);
  return bind != nullptr ? static_cast<EngineMemoryRegion*>(bind->region.get()) : nullptr;
}

GrantRequest& GrantRequestOf(EngineRequest& request) { return static_cast<GrantRequest&>(*request.card); }

}  // namespace

void GrantHolder::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

RemoteToken GrantHolder::issued() const {
  MutexLock lock(mutex_);
  return issued_;
}

bool GrantHolder::in_force() const {
  MutexLock lock(mutex_);
  return held_.grant != nullptr;
}

// Counts the window, if it is one.
bool GrantHolder::MayHold(const WorkRequest& request) {
  MutexLock lock(mutex_);
  EngineMemoryRegion* const region = RegionOf(request);
  return !retired_ && held_.grant == nullptr && (region == nullptr || region->AddWindow());
}

bool GrantHolder::Hold(EngineRequest& request, RemoteToken token, uint64_t queue_pair) {
  GrantRequest& prepared = GrantRequestOf(request);
  std::unique_ptr<EngineGrant> grant = std::move(prepared.grant);
  {
    MutexLock lock(mutex_);
    if (!retired_ && held_.grant == nullptr) {
      held_ = {.grant = std::move(grant), .token = token, .queue_pair = queue_pair};
      if (auto* const bind = std::get_if<BindWork>(&request.work.work); bind != nullptr) {
        held_.region = std::move(bind->region);
        held_.backing = std::move(bind->backing);
      } else {
        held_.backing = std::move(std::get<FastRegisterWork>(request.work.work).backing);
      }
      Count(*held_.grant);
      Publish(*held_.grant, token);
      prepared.stage = GrantRequest::Stage::kInForce;
      return true;
    }
  }
  grant.reset();  // Before the region may be deregistered, and the backing is released.
  if (EngineMemoryRegion* const region = RegionOf(request.work); region != nullptr) {
    region->RemoveWindow();
  }
  return false;
}

NtStatus GrantHolder::Execute(EngineRequest& request, RemoteToken token, uint64_t queue_pair) {
  const bool done = MayHold(request.work) && Hold(request, token, queue_pair);
  return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

bool GrantHolder::BeginBind(EngineRequest& request) {
  GrantRequest& prepared = GrantRequestOf(request);
  if (!MayHold(request.work)) {
    prepared.grant.reset();
    return false;
  }
  prepared.stage = GrantRequest::Stage::kBegun;
  return true;
}

NtStatus GrantHolder::ConcludeBind(EngineRequest& request, RemoteToken token, uint64_t queue_pair,
                                   BoundWindows& bound) {
  GrantRequest& prepared = GrantRequestOf(request);
  if (request.result.status != NtStatus::kSuccess) {
    EngineMemoryRegion* const region = RegionOf(request.work);
    if (prepared.stage == GrantRequest::Stage::kBegun && region != nullptr) {
      region->RemoveWindow();
    }
    prepared.grant.reset();
    return request.result.status;
  }
  if (!Hold(request, token, queue_pair)) {
    return NtStatus::kInvalidDeviceRequest;
  }
  bound.Insert(shared_from_this(), token.value);
  return NtStatus::kSuccess;
}

bool GrantHolder::EndHeld(Held& ended) {
  if (held_.grant == nullptr) {
    return false;
  }
  Suspend(held_.token);
  if (!held_.grant->End().ok()) {
    Publish(*held_.grant, held_.token);
    return false;
  }
  Withdraw(held_.token);
  if (held_.region != nullptr) {
    static_cast<EngineMemoryRegion&>(*held_.region).RemoveWindow();
  }
  ended = std::exchange(held_, {});  // Released without the lock.
  return true;
}

bool GrantHolder::Invalidate() {
  Held ended;
  MutexLock lock(mutex_);
  return EndHeld(ended);
}

// A window refuses the peer of a queue pair that did not bind it.
bool GrantHolder::InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) {
  Held ended;
  MutexLock lock(mutex_);
  const bool names_it = token == held_.token.value;
  const bool may = local_token_.has_value() ? names_it || token == local_token_->value
                                            : names_it && arrived_at.value_or(held_.queue_pair) == held_.queue_pair;
  return may && EndHeld(ended);
}

void GrantHolder::RetireForGood() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
