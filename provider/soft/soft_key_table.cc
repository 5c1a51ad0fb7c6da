#include "provider/soft/soft_key_table.h"

#include <utility>

#include "base/status.h"
#include "provider/soft/memory/soft_target.h"

namespace rnicd::provider {
namespace {

constexpr uint32_t kVariantBits = 8;
constexpr uint32_t kRemoteVariantBit = 0x80;

uint32_t IndexOf(uint32_t key) { return key >> kVariantBits; }

}  // namespace

// Above half of the indices, drawing a free one at random would take ever more attempts.
SoftKeyTable::SoftKeyTable(uint64_t max_regions, RandomSource& random)
    : max_regions_(max_regions == 0 || max_regions > kIndices / 2 ? kIndices / 2 : max_regions), random_(random) {}

absl::StatusOr<SoftKeyTable::Keys> SoftKeyTable::Insert(std::shared_ptr<SoftTarget> target) {
  if (size_.fetch_add(1) >= max_regions_) {
    size_.fetch_sub(1);
    return MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  while (true) {
    const uint64_t drawn = random_.Next();
    const uint32_t index = static_cast<uint32_t>(drawn) % kIndices;
    if (index == 0 || index >= kFirstReservedIndex) {
      continue;  // A token is never 0 and never equals a privileged token.
    }
    const uint32_t variant = static_cast<uint32_t>(drawn >> 32) & (kRemoteVariantBit - 1);
    const uint32_t local = (index << kVariantBits) | variant;
    const Keys keys{LocalToken{local}, RemoteToken{local | kRemoteVariantBit}};
    Shard& shard = ShardOf(index);
    MutexLock lock(shard.mutex);
    if (shard.entries.contains(index)) {
      continue;
    }
    shard.entries.emplace(index, Entry{keys, std::move(target)});
    return keys;
  }
}

void SoftKeyTable::Replace(const Keys& keys, std::shared_ptr<SoftTarget> target) {
  const uint32_t index = IndexOf(keys.local.value);
  Shard& shard = ShardOf(index);
  MutexLock lock(shard.mutex);
  const auto found = shard.entries.find(index);
  if (found != shard.entries.end()) {
    // The previous target is destroyed after the lock is released, with the parameter `target`.
    std::swap(found->second.target, target);
    found->second.keys = keys;
  }
}

LocalToken SoftKeyTable::PrivilegedTokenOf(uint64_t domain) {
  constexpr uint64_t kReserved = kIndices - kFirstReservedIndex;
  return LocalToken{static_cast<uint32_t>(kFirstReservedIndex + domain % kReserved) << kVariantBits};
}

RemoteToken SoftKeyTable::NextVariant(RemoteToken token) {
  constexpr uint32_t kVariantMask = kRemoteVariantBit - 1;
  const uint32_t next = ((token.value & kVariantMask) + 1) & kVariantMask;
  return RemoteToken{(token.value & ~kVariantMask) | next};
}

void SoftKeyTable::Remove(LocalToken token) {
  Shard& shard = ShardOf(IndexOf(token.value));
  MutexLock lock(shard.mutex);
  if (shard.entries.erase(IndexOf(token.value)) == 1) {
    size_.fetch_sub(1);
  }
}

std::shared_ptr<SoftTarget> SoftKeyTable::Find(RemoteToken token) const {
  const Shard& shard = ShardOf(IndexOf(token.value));
  MutexLock lock(shard.mutex);
  const auto found = shard.entries.find(IndexOf(token.value));
  return found != shard.entries.end() && found->second.keys.remote == token ? found->second.target : nullptr;
}

std::shared_ptr<SoftTarget> SoftKeyTable::Find(LocalToken token) const {
  const Shard& shard = ShardOf(IndexOf(token.value));
  MutexLock lock(shard.mutex);
  const auto found = shard.entries.find(IndexOf(token.value));
  return found != shard.entries.end() && found->second.keys.local == token ? found->second.target : nullptr;
}

}  // namespace rnicd::provider
