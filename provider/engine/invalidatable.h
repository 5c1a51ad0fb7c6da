#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// A registration or window that a peer or a read can invalidate by token.
class Invalidatable {
 public:
  virtual ~Invalidatable() = default;
  // True when `token` was in force here and has now been invalidated. `arrived_at` is the number of the queue pair at
  // which a peer asked the daemon for it; empty if the card has done it, or the daemon itself wants it. A window
  // refuses the peer of a queue pair that did not bind it.
  virtual bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) = 0;
};

// Windows that a queue pair has bound, which are ended before the card destroys the queue pair.
// Threads: safe.
class BoundWindows {
 public:
  void Insert(const std::shared_ptr<Invalidatable>& owner, uint32_t token);
  // Ends all remaining ones.
  void End();

 private:
  struct Bound {
    std::weak_ptr<Invalidatable> owner;
    uint32_t token = 0;
  };

  Mutex mutex_;
  std::map<const Invalidatable*, Bound> bound_ RNICD_GUARDED_BY(mutex_);
  // Number of windows at which those without an owner are forgotten; twice what was left, so that a bind costs the same
  // however many there are.
  size_t prune_at_ RNICD_GUARDED_BY(mutex_) = 64;
};

// Token of the registration that a read with local invalidate ends. Nothing for other requests, and where the bytes are
// of this process.
std::optional<LocalToken> TokenToInvalidate(const WorkRequest& request);

}  // namespace rnicd::provider
