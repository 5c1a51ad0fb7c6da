#include "daemon/rings/command_queue.h"

namespace rnicd::rings {

void CommandQueue::RunAll() {
  if (!waiting_.load(std::memory_order_acquire)) {
    return;
  }
  std::vector<Command> commands;
  {
    MutexLock lock(mutex_);
    commands.swap(commands_);
    waiting_.store(false);
  }
  for (Command& command : commands) {
    // With what it holds: the next one may be the end of this one's ring.
    std::exchange(command, nullptr)();
  }
}

}  // namespace rnicd::rings
