#include "provider/networkdirect/memory/token_table.h"

#include <utility>

namespace rnicd::provider {

uint32_t TokenTable::Reserve() {
  MutexLock lock(mutex_);
  while (true) {
    const auto token = static_cast<uint32_t>(random_.Next());
    if (token != 0 && entries_.try_emplace(token).second) {
      return token;
    }
  }
}

void TokenTable::Set(uint32_t token, Entry entry) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(token);
  if (found != entries_.end()) {
    std::swap(found->second, entry);
  }
}

void TokenTable::Remove(uint32_t token) {
  MutexLock lock(mutex_);
  entries_.erase(token);
}

TokenTable::Entry TokenTable::Find(uint32_t token) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(token);
  return found != entries_.end() ? found->second : Entry{};
}

}  // namespace rnicd::provider
