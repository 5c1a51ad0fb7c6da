#include "provider/verbs/kernel_chain.h"

#include <cerrno>
#include <utility>

#include "provider/verbs/prepared_request.h"

namespace rnicd::provider {
namespace {

BeginResult ResultOf(int error) {
  if (error == 0) {
    return BeginResult::Done(NtStatus::kSuccess);
  }
  return BeginResult::Done(error == ENODEV ? NtStatus::kCancelled : NtStatus::kInternalError);
}

}  // namespace

void KernelChain::Execute(std::span<EngineRequest* const> requests, std::span<BeginResult> results) {
  {
    MutexLock lock(engine_.mutex);
    while (steps_.size() < requests.size() && steps_.size() < RNICD_FR_OPS_MAX && Add(*requests[steps_.size()])) {
    }
    Run();
  }
  bool blocked = false;
  for (size_t index = 0; index < requests.size(); ++index) {
    blocked = blocked || (index > 0 && index >= steps_.size());
    if (blocked) {
      results[index] = BeginResult::Blocked();
      continue;
    }
    results[index] = steps_.empty() ? BeginResult::Done(NtStatus::kInvalidDeviceRequest) : ResultOf(errors_[index]);
    // What the card did behind a failure does not count: those requests are cancelled.
    blocked = results[index].status != NtStatus::kSuccess;
  }
  ended_.clear();
}

bool KernelChain::End(KernelFastRegion& region, std::optional<uint32_t> token, bool retire) {
  {
    MutexLock lock(engine_.mutex);
    region.retired_ = region.retired_ || retire;
    if (token.has_value() && region.current_.has_value() && *token != region.current_->token &&
        *token != region.local_token().value) {
      return false;
    }
    if (!AddInvalidation(region)) {
      return false;
    }
    Run();
  }
  ended_.clear();
  return true;
}

bool KernelChain::Add(EngineRequest& request) {
  if (auto* const work = std::get_if<FastRegisterWork>(&request.work.work)) {
    return AddRegistration(static_cast<KernelFastRegion&>(*work->region), *PreparedOf(request).kernel, work->backing);
  }
  return AddInvalidation(static_cast<KernelFastRegion&>(*std::get<InvalidateWork>(request.work.work).region));
}

bool KernelChain::AddRegistration(KernelFastRegion& region, KernelRegistration& registration,
                                  std::shared_ptr<const void>& backing) {
  rnicd_fr_op op = registration.op;
  if (region.retired_ || region.current_.has_value() || region.ending_[op.slot] ||
      !region.HasKey(op.region, op.slot, registration.token)) {
    return false;
  }
  op.first_run = static_cast<uint32_t>(runs_.size());
  runs_.insert(runs_.end(), registration.pinned.runs.begin(), registration.pinned.runs.end());
  ops_.push_back(op);
  steps_.push_back({.region = &region,
                    .registers = true,
                    .token = registration.token,
                    .base = {op.base},
                    .length = op.length,
                    .rights = registration.rights});
  region.current_ = {.slot = op.slot,
                     .key = op.key,
                     .token = registration.token,
                     .backing = std::move(backing),
                     .pinned = std::move(registration.pinned)};
  return true;
}

// Requests of other queue pairs find no local token any more, before the card stops to know it.
bool KernelChain::AddInvalidation(KernelFastRegion& region) {
  if (!region.current_.has_value()) {
    return false;
  }
  KernelFastRegion::Current& current = *region.current_;
  rnicd_fr_op op = {};
  op.kind = RNICD_FR_INVALIDATE;
  op.region = region.number();
  op.slot = current.slot;
  op.key = current.key;
  ops_.push_back(op);
  steps_.push_back({.region = &region, .token = current.token});
  region.domain_->RemoveLocal(region.local_token().value);
  region.domain_->RemoveRemote(current.token);
  region.registered_.store(false, std::memory_order_relaxed);
  region.ending_[current.slot] = true;
  ended_.push_back(std::move(current));
  region.current_.reset();
  return true;
}

void KernelChain::Run() {
  if (steps_.empty()) {
    return;
  }
  const int error = engine_.module().Submit(engine_.file(), ops_, runs_);
  errors_.reserve(steps_.size());
  for (size_t index = 0; index < steps_.size(); ++index) {
    const Step& step = steps_[index];
    if (error == 0) {
      step.region->NoteKey(ops_[index].slot, ops_[index].slot_key);
    }
    errors_.push_back(error != 0 ? error : -ops_[index].result);
    if (step.registers) {
      SettleRegistration(step, errors_.back());
    } else if (errors_.back() != 0 && errors_.back() != ENODEV && (error != 0 || errors_.back() != EIO)) {
      // Not a removed card, which reaches nothing, nor EIO, with which the module has ended the region itself.
      DestroyFor(step);
    }
  }
  for (const Step& step : steps_) {
    step.region->ending_ = {};
  }
}

void KernelChain::SettleRegistration(const Step& step, int error) {
  KernelFastRegion& region = *step.region;
  const bool is_last = region.current_.has_value() && region.current_->token == step.token;
  if (error == 0) {
    region.domain_->device().CountFastRegistration(FastEngineUsed::kKernel);
  }
  if (error == 0 && is_last) {
    region.domain_->SetLocal(region.local_token().value, {.lkey = step.token,
                                                          .base = step.base,
                                                          .length = step.length,
                                                          .rights = step.rights,
                                                          .owner = region.weak_from_this()});
    region.domain_->SetRemote(step.token, region.weak_from_this());
    region.registered_.store(true, std::memory_order_relaxed);
  } else if (error != 0 && is_last) {
    ended_.push_back(std::move(*region.current_));
    region.current_.reset();
  }
}

void KernelChain::DestroyFor(const Step& step) {
  if (step.region->DestroyRegion()) {
    return;
  }
  for (const KernelFastRegion::Current& ended : ended_) {
    if (ended.token == step.token) {
      engine_.Keep(ended.backing);
    }
  }
}

}  // namespace rnicd::provider
