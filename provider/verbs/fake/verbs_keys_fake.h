#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/units.h"

namespace rnicd::provider {

// A key that the kernel's module has put into force in a fake card.
struct FakeKey {
  ibv_pd* pd = nullptr;
  uint32_t key = 0;
  uint64_t base = 0;
  uint64_t length = 0;
  bool local_write = false;
  bool remote_write = false;
  std::vector<std::byte*> pages;

  bool Covers(uint64_t address, uint64_t bytes) const {
    return address >= base && address - base <= length && bytes <= length - (address - base);
  }
};

// Keys of a fake card that were not made by libibverbs. Writes under them move bytes.
// Threads: safe.
class FakeKeys {
 public:
  // Keys with these upper 24 bits are refused unless they are in force.
  void Reserve(uint32_t key) {
    MutexLock lock(mutex_);
    reserved_.insert(key & ~uint32_t{0xff});
  }
  void Add(FakeKey key) {
    MutexLock lock(mutex_);
    keys_.push_back(std::move(key));
  }
  // Also at the request of a peer. False when it was not in force.
  bool Remove(const ibv_pd* pd, uint32_t key) {
    MutexLock lock(mutex_);
    return std::erase_if(keys_, [&](const FakeKey& each) { return each.pd == pd && each.key == key; }) != 0;
  }
  // The domain cannot be freed meanwhile.
  void Hold(ibv_pd* pd) {
    MutexLock lock(mutex_);
    held_.insert(pd);
  }
  void Release(ibv_pd* pd) {
    MutexLock lock(mutex_);
    held_.erase(pd);
  }
  bool Holds(const ibv_pd* pd) const {
    MutexLock lock(mutex_);
    return held_.contains(pd);
  }

  bool AllowsLocal(const ibv_pd* pd, const ibv_sge& entry, bool write) const {
    MutexLock lock(mutex_);
    return std::ranges::any_of(keys_, [&](const FakeKey& each) {
      return each.pd == pd && each.key == entry.lkey && each.Covers(entry.addr, entry.length) &&
             (!write || each.local_write);
    });
  }
  // Executes a write of a peer; nullopt for a key that is none of these.
  std::optional<ibv_wc_status> Write(uint32_t key, uint64_t address, const std::vector<ibv_sge>& entries) const {
    MutexLock lock(mutex_);
    if (!reserved_.contains(key & ~uint32_t{0xff})) {
      return std::nullopt;
    }
    uint64_t bytes = 0;
    for (const ibv_sge& entry : entries) {
      bytes += entry.length;
    }
    const auto found = std::ranges::find_if(keys_, [&](const FakeKey& each) {
      return each.key == key && each.remote_write && each.Covers(address, bytes);
    });
    if (found == keys_.end()) {
      return IBV_WC_REM_ACCESS_ERR;
    }
    uint64_t at = found->base % kNdkPageBytes + (address - found->base);
    for (const ibv_sge& entry : entries) {
      const auto* const from = reinterpret_cast<const std::byte*>(entry.addr);
      for (uint32_t index = 0; index < entry.length; ++index, ++at) {
        found->pages[at / kNdkPageBytes][at % kNdkPageBytes] = from[index];
      }
    }
    return IBV_WC_SUCCESS;
  }

 private:
  mutable Mutex mutex_;
  std::vector<FakeKey> keys_ RNICD_GUARDED_BY(mutex_);
  std::set<uint32_t> reserved_ RNICD_GUARDED_BY(mutex_);
  std::set<const ibv_pd*> held_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
