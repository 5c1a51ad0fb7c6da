#include "daemon/core/memory/lingering_memory.h"

#include <utility>

namespace rnicd::core {

void LingeringMemory::Keep(FileWatch::Id id, UniqueFd file, MemoryCharges charges) {
  Charge lingering = charges.bytes.AlsoAs(Resource::kLingeringBytes);
  {
    MutexLock lock(mutex_);
    entries_.emplace(id, Entry{.charges = std::move(charges), .lingering = std::move(lingering)});
  }
  // Close after the entry exists: the end of a file without an entry would be missed.
  file.Reset(-1);
  Sweep();
}

void LingeringMemory::Sweep() {
  MutexLock lock(mutex_);
  for (const FileWatch::Id id : watch_.TakeEnded()) {
    entries_.erase(id);
  }
}

}  // namespace rnicd::core
