#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd::provider {

// The one thread that handles events of the cards: it waits for their descriptors and calls their handlers.
// Threads: safe.
class EventLoop {
 public:
  // Callbacks for descriptors, always called on the loop's thread. A handler may be destroyed at any time, also on that
  // thread.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Returns false when the descriptor will deliver no more events; OnTick is still called.
    virtual bool OnReadable(int descriptor) = 0;
    // Called every kTick once the handler has its first descriptor.
    virtual void OnTick() = 0;
  };
  static constexpr std::chrono::milliseconds kTick{100};

  EventLoop();
  ~EventLoop();

  // A handler may have any number of descriptors. The caller owns the descriptor and removes it before closing it.
  void Add(int descriptor, const std::weak_ptr<Handler>& handler);
  void Remove(int descriptor);
  // Once Stop has returned, no handler is called. Must not be called on the loop's thread.
  void Stop();

 private:
  void Run();
  void Dispatch(int descriptor);
  void Tick();

  const UniqueFd epoll_;
  const UniqueFd timer_;
  const UniqueFd stop_;

  Mutex mutex_;
  std::map<int, std::weak_ptr<Handler>> handlers_ RNICD_GUARDED_BY(mutex_);
  std::thread thread_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
