#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/ndk/completion.h"
#include "base/strong_id.h"

namespace rnicd::inline client {

// Where the posts go that a ring has lost, by queue pair.
// Threads: safe. Handlers run under the lock.
class LostPosts {
 public:
  // Called with the requests of the queue pair, in order; may complete them.
  using Handler = std::function<void(std::span<Completion>)>;

  void Watch(QueuePairId id, Handler handler) {
    MutexLock lock(mutex_);
    handlers_.insert_or_assign(id, std::move(handler));
  }
  // The handler is not called afterwards.
  void Remove(QueuePairId id) {
    MutexLock lock(mutex_);
    handlers_.erase(id);
  }
  void Deliver(std::map<QueuePairId, std::vector<Completion>> lost) {
    MutexLock lock(mutex_);
    for (auto& [id, requests] : lost) {
      if (const auto found = handlers_.find(id); found != handlers_.end()) {
        found->second(requests);
      }
    }
  }

 private:
  Mutex mutex_;
  std::map<QueuePairId, Handler> handlers_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
