#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/units.h"

namespace rnicd::provider {

class SoftTarget;

// Keys of a card, built as an RNIC builds them: 24 bits of index and 8 bits of variant. The index is drawn at random,
// so one owner's token reveals nothing about another's. Local and remote key share the index and differ in variant, so
// neither is accepted in place of the other.
// Threads: safe; sharded, so that concurrent registrations rarely contend.
class SoftKeyTable {
 public:
  struct Keys {
    LocalToken local;
    RemoteToken remote;
  };

  // `max_regions` 0 or above half of the indices means half of the indices: 8,388,608.
  SoftKeyTable(uint64_t max_regions, RandomSource& random);

  // Makes `target` reachable; null reserves keys that reach nothing yet. Errors: DEVICE_OUT_OF_RESOURCES.
  absl::StatusOr<Keys> Insert(std::shared_ptr<SoftTarget> target);
  // Points the keys of this index at `target`, or at nothing if null, with a new remote key.
  void Replace(const Keys& keys, std::shared_ptr<SoftTarget> target);
  // Privileged token of a protection domain. It lies outside the range of keys, so a peer can reach nothing with it.
  static LocalToken PrivilegedTokenOf(uint64_t domain);
  // The remote key with the next variant, which makes the stale key invalid. Variants repeat after 128 steps, as on a
  // card.
  static RemoteToken NextVariant(RemoteToken token);
  void Remove(LocalToken token);
  // Null when the token is not valid.
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
