#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace rnicd::provider {

class VerbsEndpoint;

// The queue pairs of this daemon, by address. A card does not notify one side of a connection when the other side ends;
// the daemon does if it owns both. Threads: safe.
class VerbsFabric {
 public:
  void Add(const std::string& address, const std::weak_ptr<VerbsEndpoint>& endpoint) {
    MutexLock lock(mutex_);
    endpoints_[address] = endpoint;
  }
  void Remove(const std::string& address) {
    MutexLock lock(mutex_);
    endpoints_.erase(address);
  }
  // Null when no queue pair of this daemon has the address.
  std::shared_ptr<VerbsEndpoint> Find(std::string_view address) {
    MutexLock lock(mutex_);
    const auto found = endpoints_.find(address);
    return found != endpoints_.end() ? found->second.lock() : nullptr;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<VerbsEndpoint>, std::less<>> endpoints_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
