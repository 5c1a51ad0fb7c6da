#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rnicd::core {

// Threads for system calls that a client can block without a limit, such as those that take the lock of its file. The
// calls of one owner queue behind each other, never behind those of another owner.
// Threads: safe. Nothing here blocks, unless the implementation has no threads.
class BlockingExecutor {
 public:
  using Job = std::function<void()>;

  enum class Started : uint8_t {
    kQueued,
    // The owner's queue is full. Neither job will run.
    kRefused,
    // An implementation without threads has run `blocking`. The caller does what `after` would do, which will not run.
    kRan,
  };

  virtual ~BlockingExecutor() = default;
  // Runs `blocking`, then `after` on the same thread. `blocking` may run long after everything else has been destroyed,
  // so it may use only what it owns. `after` must not block; it does not run once the end of the executor has begun,
  // which waits for one that runs. Both may be destroyed at any later time, so their captures hold nothing that must go
  // earlier.
  virtual Started Start(const std::string& owner, Job blocking, Job after) = 0;
};

}  // namespace rnicd::core
