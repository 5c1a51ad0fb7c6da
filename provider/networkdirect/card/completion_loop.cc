#include "provider/networkdirect/card/completion_loop.h"

#include <utility>

namespace rnicd::provider {

// The card knows a call by the address of its OVERLAPPED.
class CompletionLoop::Call : public OVERLAPPED {
 public:
  explicit Call(CompletionLoop& loop) : OVERLAPPED{}, loop_(loop) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;
  // The port has notified of the call.
  virtual void OnNotified() = 0;

 protected:
  CompletionLoop& loop_;
};

class CompletionLoop::StartedCall final : public Call {
 public:
  StartedCall(CompletionLoop& loop, ComPtr<IND2Overlapped> object, std::shared_ptr<const void> keep, Done done)
      : Call(loop), object_(std::move(object)), keep_(std::move(keep)), done_(std::move(done)) {}

  // Destroys itself when it is done.
  void OnNotified() override {
    const HRESULT result = is_over_ ? result_ : object_->GetOverlappedResult(this, 0);
    if (result == kNdPending) {
      return;  // It has a further phase, and is notified again.
    }
    CompletionLoop& loop = loop_;
    done_(result);
    delete this;
    MutexLock lock(loop.mutex_);
    --loop.started_;
    loop.changed_.NotifyAll();
  }
  void EndAtOnce(HRESULT result) {
    is_over_ = true;
    result_ = result;
  }

 private:
  const ComPtr<IND2Overlapped> object_;
  const std::shared_ptr<const void> keep_;
  const Done done_;
  bool is_over_ = false;
  HRESULT result_ = kNdSuccess;
};

// Waits on the caller's stack.
class CompletionLoop::AwaitedCall final : public Call {
 public:
  using Call::Call;

  void OnNotified() override {
    MutexLock lock(loop_.mutex_);
    notified_ = true;
    loop_.changed_.NotifyAll();
  }
  void WaitForNotification() {
    MutexLock lock(loop_.mutex_);
    while (!notified_) {
      loop_.changed_.Wait(loop_.mutex_);
    }
    notified_ = false;
  }

 private:
  // Guarded by the loop's mutex.
  bool notified_ = false;
};

CompletionLoop::CompletionLoop(std::function<void()> on_tick)
    : on_tick_(std::move(on_tick)), thread_([this] { Run(); }) {}

void CompletionLoop::Start(ComPtr<IND2Overlapped> object, std::shared_ptr<const void> keep, const Begin& begin,
                           Done done) {
  {
    MutexLock lock(mutex_);
    ++started_;
  }
  auto* const call = new StartedCall(*this, std::move(object), std::move(keep), std::move(done));
  // Once the call pends, it may be over and destroyed before `begin` has returned.
  const HRESULT result = begin(call);
  if (result != kNdPending) {
    call->EndAtOnce(result);
    port_.Notify(call);
  }
}

HRESULT CompletionLoop::Await(IND2Overlapped& object, const Begin& begin) {
  AwaitedCall call(*this);
  HRESULT result = begin(&call);
  while (result == kNdPending) {
    call.WaitForNotification();
    result = object.GetOverlappedResult(&call, 0);
  }
  return result;
}

void CompletionLoop::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  {
    MutexLock lock(mutex_);
    while (started_ > 0) {
      changed_.Wait(mutex_);
    }
  }
  stopping_ = true;
  port_.Notify(&wake_);
  thread_.join();
}

void CompletionLoop::Run() {
  auto next_tick = std::chrono::steady_clock::now() + kTick;
  while (!stopping_) {
    OVERLAPPED* const call = port_.Wait(kTick);
    if (call != nullptr && call != &wake_) {
      static_cast<Call*>(call)->OnNotified();
    }
    if (std::chrono::steady_clock::now() >= next_tick) {
      next_tick = std::chrono::steady_clock::now() + kTick;
      on_tick_();
    }
  }
}

}  // namespace rnicd::provider
