#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/clock.h"
#include "daemon/core/request/blocking_executor.h"

namespace rnicd::door {

// Threads for work that a client can block for as long as it likes, such as closing a descriptor that it sent: a socket
// with SO_LINGER waits for its peer, a FUSE file for its server. Jobs of one owner run one after another, so an owner
// that blocks a job delays only its own. Threads are made when they are needed, up to the limit,
// and all but one end when they are not.
// Lifetime: the clock outlives it. The destructor waits a moment for the jobs, then leaves those that are blocked, and
//           their owners' jobs behind them, to the end of the process. So a job may use only what it owns.
// Threads:  safe. Nothing here blocks; jobs never run inside Run or TryRun.
class Bulkhead final : public core::BlockingExecutor {
 public:
  struct Limits {
    size_t threads = 512;
    // Jobs of one owner that TryRun lets wait.
    size_t waiting_of_owner = 64;
  };

  explicit Bulkhead(const Clock& clock) : Bulkhead(clock, Limits{}) {}
  Bulkhead(const Clock& clock, const Limits& limits);
  ~Bulkhead() override;
  Bulkhead(const Bulkhead&) = delete;
  Bulkhead& operator=(const Bulkhead&) = delete;

  void Run(const std::string& owner, Job job);
  // False when the owner has too many waiting; then the job is not run.
  bool TryRun(const std::string& owner, Job job);
  // As TryRun; never Started::kRan.
  Started Start(const std::string& owner, Job blocking, Job after) override;
  // Jobs that have not ended.
  size_t size() const;
  size_t threads() const;

 private:
  struct State;

  const Clock& clock_;
  // Shared with the threads, which may outlive this.
  const std::shared_ptr<State> state_;
};

}  // namespace rnicd::door
