#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/ndk/network_address.h"

namespace rnicd::provider {

// Which queue pairs of this daemon are at the ends of connections: what comes from another daemon, or from none, says
// nothing that could be told apart from a lie.
// Threads: safe.
class CmEnds {
 public:
  // `address`: that of the queue pair, as the fabric has it.
  void Add(const NetworkAddress& local, const NetworkAddress& peer, const std::string& address) {
    MutexLock lock(mutex_);
    ends_[{local, peer}] = address;
  }
  void Remove(const NetworkAddress& local, const NetworkAddress& peer, const std::string& address) {
    MutexLock lock(mutex_);
    const auto found = ends_.find({local, peer});
    if (found != ends_.end() && found->second == address) {
      ends_.erase(found);
    }
  }
  // Empty if there is none.
  std::string Find(const NetworkAddress& local, const NetworkAddress& peer) const {
    MutexLock lock(mutex_);
    const auto found = ends_.find({local, peer});
    return found != ends_.end() ? found->second : "";
  }

 private:
  mutable Mutex mutex_;
  std::map<std::pair<NetworkAddress, NetworkAddress>, std::string> ends_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
