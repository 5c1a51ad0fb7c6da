#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// The allocations with a progress callback, keyed by their progress context.
// Threads: safe. A callback runs under the lock: it does not run any more when its Watch has ended, and must not call
//          anything of the client.
class ProgressWatch : public std::enable_shared_from_this<ProgressWatch> {
 public:
  // Bytes that are ready, and bytes in all.
  using Callback = std::function<void(uint64_t populated_bytes, uint64_t size)>;

  // Delivers to the callback until it is destroyed.
  class Watch {
   public:
    Watch(std::shared_ptr<ProgressWatch> owner, uint64_t context) : owner_(std::move(owner)), context_(context) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { owner_->Remove(context_); }
    uint64_t context() const { return context_; }

   private:
    const std::shared_ptr<ProgressWatch> owner_;
    const uint64_t context_;
  };

  std::unique_ptr<Watch> Add(Callback callback) {
    MutexLock lock(mutex_);
    callbacks_.emplace(++last_context_, std::move(callback));
    return std::make_unique<Watch>(shared_from_this(), last_context_);
  }

  void Deliver(const v1::MemoryProgress& event) {
    MutexLock lock(mutex_);
    if (const auto found = callbacks_.find(event.progress_context()); found != callbacks_.end()) {
      found->second(event.populated_bytes(), event.size());
    }
  }

 private:
  void Remove(uint64_t context) {
    MutexLock lock(mutex_);
    callbacks_.erase(context);
  }

  Mutex mutex_;
  uint64_t last_context_ RNICD_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Callback> callbacks_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
