#include "daemon/transport/inbox.h"

#include <sys/eventfd.h>

#include <utility>

namespace rnicd::transport {

Inbox::Inbox() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Inbox::Post(Task task) {
  {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  WakeUp();
}

void Inbox::WakeUp() { eventfd_write(event_.get(), 1); }

void Inbox::Run() {
  eventfd_t count = 0;
  eventfd_read(event_.get(), &count);
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) {
    task();
  }
}

}  // namespace rnicd::transport
