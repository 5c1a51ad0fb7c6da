#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/mutex.h"

namespace rnicd::door {

// Counts connections against a limit for all and a limit for each owner; 0 means none.
// Threads: safe.
class Places : public std::enable_shared_from_this<Places> {
 public:
  Places(uint64_t limit, uint64_t limit_of_owner) : limit_(limit), limit_of_owner_(limit_of_owner) {}

  // Takes a place, until what it returns is destroyed. Null when there is none left, for anybody or for this owner.
  std::shared_ptr<void> Take(const std::string& owner);
  // True when none is left for anybody.
  bool IsFull() const;

 private:
  bool IsFullNow() const RNICD_REQUIRES(mutex_) { return limit_ != 0 && taken_ >= limit_; }
  void Return(const std::string& owner);

  const uint64_t limit_;
  const uint64_t limit_of_owner_;
  mutable Mutex mutex_;
  uint64_t taken_ RNICD_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, uint64_t> taken_by_owner_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::door
