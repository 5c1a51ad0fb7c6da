// The thread, faults, and calls that pend.

#include "tests/networkdirect_model/model.h"

#include <algorithm>

namespace rnicd::provider::model {

Model::Model() : thread_([this] { Run(); }) {}

Model::~Model() {
  {
    MutexLock lock(mutex);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  CloseFileEnds(*this);
}

void Model::Run() {
  MutexLock lock(mutex);
  while (!stop_) {
    if (!work_ || held_) {
      running_ = false;
      changed_.Wait(mutex);
      continue;
    }
    running_ = true;
    work_ = false;
    // One request of each queue pair in turn. Executing one changes no set of queue pairs.
    for (QueuePair* const pair : pairs) {
      work_ = ExecuteOne(*this, *pair) || work_;
    }
    // Lets clients in.
    mutex.Unlock();
    std::this_thread::yield();
    mutex.Lock();
  }
}

// --- control ---

void Model::SetPending(ModelPending mode) {
  MutexLock lock(mutex);
  mode_ = mode;
}

ModelPending Model::NextPending() {
  if (mode_ != ModelPending::kMixed) {
    return mode_;
  }
  constexpr ModelPending kModes[] = {ModelPending::kInline, ModelPending::kPending, ModelPending::kTwoPhases};
  return kModes[turn_++ % 3];
}

void Model::FailNext(const char* method, HRESULT result, uint32_t skip, uint32_t count) {
  MutexLock lock(mutex);
  faults_[method] = {.result = result, .skip = skip, .count = count};
}

bool Model::TakeFault(const char* method, HRESULT& result) {
  const auto found = faults_.find(method);
  if (found == faults_.end() || found->second.count == 0) {
    return false;
  }
  Fault& fault = found->second;
  if (fault.skip > 0) {
    --fault.skip;
    return false;
  }
  --fault.count;
  result = fault.result;
  return true;
}

HRESULT Model::Check(const char* method, UINT64 card) {
  HRESULT result = kNdSuccess;
  if (TakeFault(method, result)) {
    return result;
  }
  return removed.contains(card) ? kNdDeviceRemoved : kNdSuccess;
}

void Model::Hold(bool held) {
  MutexLock lock(mutex);
  held_ = held;
  Wake();
}

// A card that is gone reports nothing any more but that.
void Model::Remove(UINT64 adapter_id) {
  MutexLock lock(mutex);
  removed.insert(adapter_id);
  for (OverlappedCalls* const caller : callers) {
    if (caller->card() == adapter_id) {
      caller->EndAll(kNdDeviceRemoved);
    }
  }
  for (QueuePair* const pair : pairs) {
    if (pair->domain->card == adapter_id) {
      pair->in_error = true;
      pair->Disconnect();
    }
  }
}

ModelCounts Model::Count() const {
  MutexLock lock(mutex);
  uint64_t pending = 0;
  for (const OverlappedCalls* const caller : callers) {
    pending += caller->size();
  }
  return {.objects = objects, .regions = regions, .bound_windows = bound, .pending_calls = pending};
}

void Model::Violate(const std::string& text) {
  if (violation_.empty()) {
    violation_ = text;
  }
}

void Model::FirstViolation(char* text, size_t bytes) const {
  MutexLock lock(mutex);
  const size_t count = std::min(violation_.size(), bytes - 1);
  std::memcpy(text, violation_.data(), count);
  text[count] = '\0';
}

bool Model::IsIdle() const {
  MutexLock lock(mutex);
  const auto waits = [](const QueuePair* pair) {
    return pair->initiator_queue != nullptr && !pair->initiator_queue->results.empty();
  };
  return (held_ || (!work_ && !running_)) && std::ranges::none_of(pairs, waits);
}

uint64_t Model::BindsExecuted() const {
  MutexLock lock(mutex);
  return binds;
}

uint64_t Model::InvalidatesExecuted() const {
  MutexLock lock(mutex);
  return invalidates;
}

// --- calls that pend ---

HRESULT OverlappedCalls::Finish(OVERLAPPED* call, HRESULT status) {
  const ModelPending mode = model_.NextPending();
  if (mode == ModelPending::kInline || (NdFailed(status) && mode == ModelPending::kTwoPhases)) {
    return status;
  }
  calls_[call] = {.waiting = false, .has_second_phase = mode == ModelPending::kTwoPhases, .status = status};
  BeginPending(file_, call);
  NotifyPending(file_, call);
  return kNdPending;
}

HRESULT OverlappedCalls::Wait(OVERLAPPED* call) {
  calls_[call] = {};
  BeginPending(file_, call);
  return kNdPending;
}

bool OverlappedCalls::IsWaiting(OVERLAPPED* call) const {
  const auto found = calls_.find(call);
  return found != calls_.end() && found->second.waiting;
}

void OverlappedCalls::End(OVERLAPPED* call, HRESULT status) {
  if (IsWaiting(call)) {
    calls_[call] = {.waiting = false, .has_second_phase = false, .status = status};
    NotifyPending(file_, call);
  }
}

void OverlappedCalls::EndAll(HRESULT status) {
  for (auto& [call, state] : calls_) {
    if (state.waiting) {
      state = {.waiting = false, .has_second_phase = false, .status = status};
      NotifyPending(file_, call);
    }
  }
}

HRESULT OverlappedCalls::Result(OVERLAPPED* call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) {
    model_.Violate("GetOverlappedResult of a call that is not pending");
    return kNdInvalidParameter;
  }
  if (found->second.waiting) {
    return kNdPending;
  }
  if (found->second.has_second_phase) {
    found->second.has_second_phase = false;
    BeginPending(file_, call);
    NotifyPending(file_, call);
    return kNdPending;
  }
  const HRESULT status = found->second.status;
  calls_.erase(found);
  return status;
}

}  // namespace rnicd::provider::model
