#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace rnicd::provider {

class NdEndpoint;

// Which queue pairs of a provider have connected to which. A connection of Network Direct has two ends with different
// duties, so it is made when both queue pairs have named each other. It passes endpoints on and does not look into
// them: their room is above this one.
// Threads: safe.
class NdRendezvous {
 public:
  enum class Relation : uint8_t {
    // The peer has named nobody yet.
    kAlone,
    kMutual,
    // The peer has named another, or is gone.
    kElsewhere,
  };

  // Makes a queue pair known; its engine owns the endpoint.
  void Add(const std::string& address, const std::weak_ptr<NdEndpoint>& endpoint);
  void Remove(const std::string& address);
  // Records that `address` wants `peer`. Returns the peer if it wants `address` as well: for the second of the two.
  std::shared_ptr<NdEndpoint> Match(const std::string& address, std::string_view peer);
  Relation RelationOf(const std::string& address, const std::string& peer) const;
  // Those whose engine has not ended.
  std::vector<std::shared_ptr<NdEndpoint>> Endpoints() const;

 private:
  struct Entry {
    std::weak_ptr<NdEndpoint> endpoint;
    std::string wanted;
  };

  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
