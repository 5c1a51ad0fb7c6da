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
#include "daemon/rpc/socket/poller.h"

namespace rnicd::rpc {

// One thread that waits for descriptors, for times, and for tasks of other threads.
// Lifetime: Stop runs the tasks that were posted, then joins; what the tasks use outlives that. Tasks posted later are
//           dropped.
// Threads:  Post and OnThread from any; Stop from any other; everything else only on the loop's own thread, inside
//           tasks and callbacks.
class EventLoop {
 public:
  using Task = std::function<void()>;
  using OnReady = std::function<void(uint32_t events)>;
  // Names a watched descriptor; never used again for another one. 0 names none.
  using Key = Poller::Key;
  // Names a timer; the default names none.
  struct Timer {
    Instant due;
    Key key = 0;
    auto operator<=>(const Timer&) const = default;
  };

  // `clock` outlives the loop. Errors: those of Poller::Create.
  static absl::StatusOr<std::shared_ptr<EventLoop>> Start(const Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void Stop();

  void Post(Task task);
  bool OnThread() const { return std::this_thread::get_id() == thread_id_.load(); }

  // Calls `on_ready` whenever one of `events` holds (level-triggered; bits of poller.h). Returns 0 when the system
  // refuses.
  Key Watch(int fd, uint32_t events, OnReady on_ready);
  void Change(Key key, uint32_t events);
  // Before the descriptor is closed. The callback is not called again, and may be running.
  void Forget(Key key);

  Instant Now() const { return clock_.Now(); }
  Timer CallAt(Instant due, Task task);
  void CancelTimer(const Timer& timer) { timers_.erase(timer); }
  // Runs the timers that are due. By itself the loop does so at their times of steady_clock.
  void RunDue();

 private:
  struct Watched {
    int fd = -1;
    std::shared_ptr<OnReady> on_ready;
  };

  EventLoop(const Clock& clock, std::unique_ptr<Poller> poller) : clock_(clock), poller_(std::move(poller)) {}
  void Run();
  void OnEvent(uint32_t events, Key key);
  // Sets the alarm to the first timer, unless it goes off earlier.
  void SetAlarm();
  // False once the loop is to end and no task is left.
  bool RunTasks();

  const Clock& clock_;
  const std::unique_ptr<Poller> poller_;

  // Used only by the thread.
  std::unordered_map<Key, Watched> watched_;
  std::map<Timer, Task> timers_;
  Key last_key_ = Poller::kAlarm;
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
