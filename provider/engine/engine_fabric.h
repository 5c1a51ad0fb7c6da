#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace rnicd::provider {

class QueuePairEngine;

// The queue pairs of one provider, by address.
// Threads: safe.
class EngineFabric {
 public:
  // Keeps an address for a queue pair that is added later. False when the address is taken.
  bool Reserve(const std::string& address) {
    MutexLock lock(mutex_);
    return engines_.try_emplace(address).second;
  }
  void Add(const std::string& address, const std::weak_ptr<QueuePairEngine>& engine) {
    MutexLock lock(mutex_);
    engines_[address] = engine;
  }
  void Remove(const std::string& address) {
    MutexLock lock(mutex_);
    engines_.erase(address);
  }
  // Null when no queue pair has the address.
  std::shared_ptr<QueuePairEngine> Find(std::string_view address) const {
    MutexLock lock(mutex_);
    const auto found = engines_.find(address);
    return found != engines_.end() ? found->second.lock() : nullptr;
  }
  std::vector<std::shared_ptr<QueuePairEngine>> All() const {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<QueuePairEngine>> all;
    for (const auto& [address, weak] : engines_) {
      if (std::shared_ptr<QueuePairEngine> engine = weak.lock(); engine != nullptr) {
        all.push_back(std::move(engine));
      }
    }
    return all;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::weak_ptr<QueuePairEngine>, std::less<>> engines_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
