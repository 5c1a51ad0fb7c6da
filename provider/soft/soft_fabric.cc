#include "provider/soft/soft_fabric.h"

#include <cstring>

namespace rnicd::provider {

uint64_t SoftFabric::NewNumber() {
  while (true) {
    const uint64_t number = random_.Next();
    MutexLock lock(mutex_);
    if (number != 0 && endpoints_.try_emplace(number).second) {
      return number;
    }
  }
}

void SoftFabric::Add(uint64_t number, std::weak_ptr<SoftEndpoint> endpoint) {
  MutexLock lock(mutex_);
  endpoints_[number] = std::move(endpoint);
}

void SoftFabric::Remove(uint64_t number) {
  MutexLock lock(mutex_);
  endpoints_.erase(number);
}

std::string SoftFabric::AddressOf(uint64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::shared_ptr<SoftEndpoint> SoftFabric::Find(std::string_view address) const {
  uint64_t number = 0;
  if (address.size() != sizeof(number)) {
    return nullptr;
  }
  std::memcpy(&number, address.data(), sizeof(number));
  MutexLock lock(mutex_);
  const auto found = endpoints_.find(number);
  return found != endpoints_.end() ? found->second.lock() : nullptr;
}

}  // namespace rnicd::provider
