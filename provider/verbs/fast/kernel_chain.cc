#include "provider/verbs/fast/kernel_chain.h"

#include <cerrno>
#include <utility>

#include "provider/verbs/fast/prepared_request.h"

namespace rnicd::provider {
namespace {

// ENODEV: the card was removed.
BeginResult ResultOf(int error) {
  if (error == ENODEV) {
    return BeginResult::Done({.status = NtStatus::kCancelled, .peer_lost = true});
  }
  return BeginResult::Done(error == 0 ? NtStatus::kSuccess : NtStatus::kInternalError);
}

}  // namespace

void KernelChain::Execute(std::span<EngineRequest* const> requests, std::span<BeginResult> results) {
  {
    MutexLock lock(engine_.mutex);
    const std::vector<Step>& steps = engine_.scratch.steps;
    while (steps.size() < requests.size() && steps.size() < RNICD_FR_OPS_MAX && Add(*requests[steps.size()])) {
    }
    Run();
    Report(results.first(requests.size()));
    engine_.scratch.Clear();
  }
  ended_.clear();
}

void KernelChain::Report(std::span<BeginResult> results) const {
  const std::vector<int>& errors = engine_.scratch.errors;
  bool blocked = false;
  for (size_t index = 0; index < results.size(); ++index) {
    blocked = blocked || (index > 0 && index >= errors.size());
    if (blocked) {
      results[index] = BeginResult::Blocked();
      continue;
    }
    results[index] = errors.empty() ? BeginResult::Done(NtStatus::kInvalidDeviceRequest) : ResultOf(errors[index]);
    // Results after a failure are ignored: those requests are cancelled.
    blocked = results[index].IsFailure();
  }
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
    engine_.scratch.Clear();
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
  KernelScratch& scratch = engine_.scratch;
  op.first_run = static_cast<uint32_t>(scratch.runs.size());
  scratch.runs.insert(scratch.runs.end(), registration.pinned.runs.begin(), registration.pinned.runs.end());
  scratch.ops.push_back(op);
  scratch.steps.push_back({.region = &region,
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

// Removes the local token before the card invalidates it, so that requests of other queue pairs cannot find it any
// more.
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
  engine_.scratch.ops.push_back(op);
  engine_.scratch.steps.push_back({.region = &region, .token = current.token});
  region.domain_->RemoveLocal(region.local_token().value);
  region.domain_->RemoveRemote(current.token);
  region.registered_.store(false, std::memory_order_relaxed);
  region.ending_[current.slot] = true;
  ended_.push_back(std::move(current));
  region.current_.reset();
  return true;
}

void KernelChain::Run() {
  KernelScratch& scratch = engine_.scratch;
  if (scratch.steps.empty()) {
    return;
  }
  const int error = engine_.module().Submit(engine_.file(), scratch.ops, scratch.runs);
  scratch.errors.reserve(scratch.steps.size());
  for (size_t index = 0; index < scratch.steps.size(); ++index) {
    const Step& step = scratch.steps[index];
    const rnicd_fr_op& op = scratch.ops[index];
    if (error == 0) {
      step.region->RecordKey(op.slot, op.slot_key);
    }
    const int own_error = error != 0 ? error : -op.result;
    scratch.errors.push_back(own_error);
    if (step.registers) {
      SettleRegistration(step, own_error);
    } else if (own_error != 0 && own_error != ENODEV && (error != 0 || own_error != EIO)) {
      // Not a removed card, which reaches nothing, nor EIO, with which the module has ended the region itself.
      DestroyFor(step);
    }
  }
  for (const Step& step : scratch.steps) {
    step.region->ending_ = {};
  }
}

void KernelChain::SettleRegistration(const Step& step, int error) {
  KernelFastRegion& region = *step.region;
  const bool is_last = region.current_.has_value() && region.current_->token == step.token;
  if (error == 0) {
    region.domain_->context().node().CountFastRegistration(FastEngineUsed::kKernel);
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
