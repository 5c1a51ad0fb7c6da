#pragma once

#include <functional>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd::transport {

// Wakes a thread that sleeps in epoll, and gives it tasks. The thread watches fd() for EPOLLIN, and then calls Run.
// Lifetime: tasks that were not run are dropped with it.
// Threads:  Run on that thread, the rest from any.
class Inbox {
 public:
  using Task = std::function<void()>;

  Inbox();

  // False when the system gave no descriptor.
  bool valid() const { return event_.valid(); }
  int fd() const { return event_.get(); }

  void Post(Task task);
  void WakeUp();
  void Run();

 private:
  const UniqueFd event_;
  Mutex mutex_;
  std::vector<Task> tasks_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::transport
