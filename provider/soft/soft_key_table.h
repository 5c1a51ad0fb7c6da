#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/units.h"

namespace rnicd::provider {

class SoftRegionMemory;

// The keys of a card, as an RNIC builds them: 24 bits of index and 8 bits of variant. The index is drawn at random, so
// that one owner's token says nothing about another's; local and remote key share the index and differ in variant, so
// that one never passes for the other.
// Threads: safe; sharded, so that registrations do not queue behind each other.
class SoftKeyTable {
 public:
  struct Keys {
    LocalToken local;
    RemoteToken remote;
  };

  // `max_regions` 0, or more than that, means half of the indices: 8,388,608.
  SoftKeyTable(uint64_t max_regions, RandomSource& random);

  // Makes `memory` reachable. Errors: DEVICE_OUT_OF_RESOURCES.
  absl::StatusOr<Keys> Insert(std::shared_ptr<SoftRegionMemory> memory);
  void Remove(LocalToken token);
  // Null when the token is not alive.
  std::shared_ptr<SoftRegionMemory> Find(RemoteToken token) const;
  std::shared_ptr<SoftRegionMemory> Find(LocalToken token) const;
  uint64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    Keys keys;
    std::shared_ptr<SoftRegionMemory> memory;
  };
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<uint32_t, Entry> entries RNICD_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 64;
  static constexpr uint32_t kIndices = 1U << 24;

  Shard& ShardOf(uint32_t index) { return shards_[index % kShards]; }
  const Shard& ShardOf(uint32_t index) const { return shards_[index % kShards]; }

  const uint64_t max_regions_;
  RandomSource& random_;
  std::atomic<uint64_t> size_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace rnicd::provider
