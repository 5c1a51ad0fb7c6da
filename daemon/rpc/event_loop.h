#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace rnicd::rpc {

// One thread that waits for descriptors, for times, and for tasks of other threads.
// Lifetime: Stop runs the tasks that were posted, then joins; what the tasks use outlives that. Tasks posted later are
//           dropped.
// Threads:  Post and OnThread from any; Stop from any other; everything else only on the loop's own thread, inside
//           tasks and callbacks.
class EventLoop {
 public:
  using Task = std::function<void()>;
  using OnReady = std::function<void(uint32_t epoll_events)>;
  // Names a watched descriptor; never used again for another one. 0 names none.
  using Key = uint64_t;
  // Names a timer; the default names none.
  struct Timer {
    Instant due;
    Key key = 0;
    auto operator<=>(const Timer&) const = default;
  };

  // Errors: kUnavailable without descriptors.
  static absl::StatusOr<std::shared_ptr<EventLoop>> Start();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void Stop();

  void Post(Task task);
  bool OnThread() const { return std::this_thread::get_id() == thread_id_.load(); }

  // Calls `on_ready` whenever one of `epoll_events` holds (level-triggered). Returns 0 when the kernel refuses.
  Key Watch(int fd, uint32_t epoll_events, OnReady on_ready);
  void Change(Key key, uint32_t epoll_events);
  // Before the descriptor is closed. The callback is not called again, and may be running.
  void Forget(Key key);

  Timer CallAt(Instant due, Task task);
  void CancelTimer(const Timer& timer) { timers_.erase(timer); }

 private:
  // Keys of the loop's own descriptors: wake_up_ and alarm_.
  static constexpr Key kReservedKeys = 2;

  struct Watched {
    int fd = -1;
    std::shared_ptr<OnReady> on_ready;
  };

  EventLoop(UniqueFd epoll, UniqueFd wake_up, UniqueFd alarm)
      : epoll_(std::move(epoll)), wake_up_(std::move(wake_up)), alarm_(std::move(alarm)) {}
  void Run();
  void OnEvent(uint32_t epoll_events, Key key);
  // Sets the alarm to the first timer, unless it goes off earlier.
  void SetAlarm();
  void RunTimers();
  // False once the loop is to end and no task is left.
  bool RunTasks();

  const UniqueFd epoll_;
  const UniqueFd wake_up_;
  // A timerfd: waiting with a timeout would set a timer of the kernel's at every wait.
  const UniqueFd alarm_;

  // Used only by the thread.
  std::unordered_map<Key, Watched> watched_;
  std::map<Timer, Task> timers_;
  Key last_key_ = kReservedKeys;
  // When the alarm goes off; empty while it is not set.
  std::optional<Instant> alarm_due_;
  // A copy of stopping_.
  bool ending_ = false;

  Mutex mutex_;
  std::vector<Task> tasks_ RNICD_GUARDED_BY(mutex_);
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  // True once nothing runs tasks any more.
  bool stopped_ RNICD_GUARDED_BY(mutex_) = false;

  // The thread's number while it runs. Not read from thread_, which Stop changes while others ask.
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

}  // namespace rnicd::rpc
