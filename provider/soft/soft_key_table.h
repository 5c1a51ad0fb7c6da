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

class SoftTarget;

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

  // Makes `target` reachable; null reserves keys that lead nowhere yet. Errors: DEVICE_OUT_OF_RESOURCES.
  absl::StatusOr<Keys> Insert(std::shared_ptr<SoftTarget> target);
  // Lets the keys of this index lead to `target`, or nowhere when null, with another remote key.
  void Replace(const Keys& keys, std::shared_ptr<SoftTarget> target);
  // A token of a protection domain's own. It lies outside the keys, so that no peer can reach anything with it.
  static LocalToken PrivilegedTokenOf(uint64_t domain);
  // The remote key with the next variant: what makes a stale one die. It comes back after 128 steps, as on a card.
  static RemoteToken NextVariant(RemoteToken token);
  void Remove(LocalToken token);
  // Null when the token is not alive.
  std::shared_ptr<SoftTarget> Find(RemoteToken token) const;
  std::shared_ptr<SoftTarget> Find(LocalToken token) const;
  uint64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    Keys keys;
    std::shared_ptr<SoftTarget> target;
  };
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<uint32_t, Entry> entries RNICD_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 64;
  static constexpr uint32_t kIndices = 1U << 24;
  static constexpr uint32_t kFirstReservedIndex = kIndices - (1U << 16);

  Shard& ShardOf(uint32_t index) { return shards_[index % kShards]; }
  const Shard& ShardOf(uint32_t index) const { return shards_[index % kShards]; }

  const uint64_t max_regions_;
  RandomSource& random_;
  std::atomic<uint64_t> size_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace rnicd::provider
