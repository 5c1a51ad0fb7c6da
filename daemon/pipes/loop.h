#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd::pipes {

struct Operation;

// One thread with a completion port: it runs what follows a finished operation, tasks of other threads, and a tick.
// Lifetime: shared with those that post; Stop before what the tasks use is destroyed. Later tasks are dropped.
// Threads:  Post and Stop from any other thread; Attach and Began only on the loop's, or before Start.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  using Task = std::function<void()>;
  static constexpr std::chrono::milliseconds kTick{200};

  // Errors: WindowsStatus of the completion port.
  static absl::StatusOr<std::shared_ptr<Loop>> Create();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Start(Task on_tick);
  void Post(Task task);
  // Runs the task on the loop and waits for it. Not at the same time as Stop.
  void Call(const Task& task);
  // Runs `last`, then what follows the operations that it left, and ends the thread.
  void Stop(Task last);

  // From now on operations on the handle end here, with `Operation::on_done`. False when Windows refuses.
  bool Attach(int handle);
  // An operation was begun, and its end will arrive here.
  void Began() { ++running_; }
  // The same for one that failed when it was begun: of its end Windows says nothing.
  void Failed(Operation& operation, uint32_t error);

 private:
  explicit Loop(UniqueFd port) : port_(std::move(port)) {}
  void Run(const Task& on_tick);
  void WaitOnce();
  void End(Operation& operation, uint32_t bytes, uint32_t error);
  void RunTasks();
  bool IsOver();
  void Wake();

  const UniqueFd port_;
  std::thread thread_;
  // Used only by the loop's thread, once it runs.
  uint64_t running_ = 0;
  std::deque<std::pair<Operation*, uint32_t>> failed_;

  Mutex mutex_;
  std::deque<Task> tasks_ RNICD_GUARDED_BY(mutex_);
  // True once the last task is queued.
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::pipes
