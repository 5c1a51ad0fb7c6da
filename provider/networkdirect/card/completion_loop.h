#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "provider/networkdirect/card/com_ptr.h"
#include "provider/networkdirect/card/completion_port.h"
#include "provider/networkdirect/card/nd2.h"

namespace rnicd::provider {

// A thread that finishes calls to a card: those that completed at once and those that pended end the same way.
// Lifetime: outlives the files associated with it; what its callbacks use outlives Stop.
// Threads:  safe.
class CompletionLoop {
 public:
  static constexpr std::chrono::milliseconds kTick{100};
  // Makes the call with the OVERLAPPED, and returns its result.
  using Begin = std::function<HRESULT(OVERLAPPED*)>;
  using Done = std::function<void(HRESULT)>;

  // `on_tick` is called on the thread every kTick.
  explicit CompletionLoop(std::function<void()> on_tick = [] {});
  ~CompletionLoop() { Stop(); }

  // Errors: false if the system refuses.
  bool Associate(HANDLE file) { return port_.Associate(file); }
  // Begins a call on the object. `done` gets its final status, once, on the loop's thread. Object and `keep` are held
  // until then. Not after Stop has begun, except from `done`.
  void Start(ComPtr<IND2Overlapped> object, std::shared_ptr<const void> keep, const Begin& begin, Done done);
  // Makes a call on the object and returns its final status. Not on the loop's thread.
  HRESULT Await(IND2Overlapped& object, const Begin& begin);
  // Returns when every call that was started is done. Not on the loop's thread.
  void Stop();

 private:
  class Call;
  class StartedCall;
  class AwaitedCall;

  void Run();

  const std::function<void()> on_tick_;
  CompletionPort port_;
  OVERLAPPED wake_ = {};
  std::atomic<bool> stopping_ = false;

  Mutex mutex_;
  ConditionVariable changed_;
  uint64_t started_ RNICD_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace rnicd::provider
