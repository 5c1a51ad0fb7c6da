#include "provider/networkdirect/memory/nd_rendezvous.h"

#include <utility>

namespace rnicd::provider {

void NdRendezvous::Add(const std::string& address, const std::weak_ptr<NdEndpoint>& endpoint) {
  MutexLock lock(mutex_);
  entries_[address].endpoint = endpoint;
}

void NdRendezvous::Remove(const std::string& address) {
  MutexLock lock(mutex_);
  entries_.erase(address);
}

std::shared_ptr<NdEndpoint> NdRendezvous::Match(const std::string& address, std::string_view peer) {
  MutexLock lock(mutex_);
  const auto own = entries_.find(address);
  if (own == entries_.end()) {
    return nullptr;  // Closed meanwhile.
  }
  own->second.wanted = peer;
  const auto other = entries_.find(peer);
  return other != entries_.end() && other->second.wanted == address ? other->second.endpoint.lock() : nullptr;
}

NdRendezvous::Relation NdRendezvous::RelationOf(const std::string& address, const std::string& peer) const {
  MutexLock lock(mutex_);
  const auto other = entries_.find(peer);
  if (other == entries_.end()) {
    return Relation::kElsewhere;
  }
  if (other->second.wanted.empty()) {
    return Relation::kAlone;
  }
  return other->second.wanted == address ? Relation::kMutual : Relation::kElsewhere;
}

std::vector<std::shared_ptr<NdEndpoint>> NdRendezvous::Endpoints() const {
  std::vector<std::shared_ptr<NdEndpoint>> endpoints;
  MutexLock lock(mutex_);
  for (const auto& [address, entry] : entries_) {
    if (std::shared_ptr<NdEndpoint> endpoint = entry.endpoint.lock(); endpoint != nullptr) {
      endpoints.push_back(std::move(endpoint));
    }
  }
  return endpoints;
}

}  // namespace rnicd::provider
