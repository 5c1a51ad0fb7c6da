#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace rnicd::provider {

// The one thread on which cards speak: it waits for their descriptors and calls whoever stands behind them.
// Threads: safe.
class EventLoop {
 public:
  // Who is called, always on the loop's thread. It may go at any time, also on that thread.
  class Handler {
   public:
    virtual ~Handler() = default;
    // False when nothing will come from the descriptor any more; the handler still ticks.
    virtual bool OnReadable(int descriptor) = 0;
    // Every kTick, from the first descriptor on.
    virtual void OnTick() = 0;
  };
  static constexpr std::chrono::milliseconds kTick{100};

  EventLoop();
  ~EventLoop();

  // Any number of descriptors for one handler. The descriptor is the caller's, who removes it before closing it.
  void Add(int descriptor, const std::weak_ptr<Handler>& handler);
  void Remove(int descriptor);
  // Nobody is called any more when it returned. Not from the loop's own thread.
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
