#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace rnicd {

// A 64-bit id that does not mix with the ids of other kinds. 0 is never a valid id.
template <typename Tag>
struct StrongId {
  uint64_t value = 0;
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

using SessionId = StrongId<struct SessionIdTag>;
using AdapterId = StrongId<struct AdapterIdTag>;
using ProtectionDomainId = StrongId<struct ProtectionDomainIdTag>;
using MemoryObjectId = StrongId<struct MemoryObjectIdTag>;
using MemoryRegionId = StrongId<struct MemoryRegionIdTag>;
using LogicalMappingId = StrongId<struct LogicalMappingIdTag>;
using CompletionQueueId = StrongId<struct CompletionQueueIdTag>;
using QueuePairId = StrongId<struct QueuePairIdTag>;
using MemoryWindowId = StrongId<struct MemoryWindowIdTag>;
using ListenerId = StrongId<struct ListenerIdTag>;
using ConnectorId = StrongId<struct ConnectorIdTag>;
using SharedEndpointId = StrongId<struct SharedEndpointIdTag>;
using RingId = StrongId<struct RingIdTag>;
using GrantId = StrongId<struct GrantIdTag>;

}  // namespace rnicd

template <typename Tag>
struct std::hash<rnicd::StrongId<Tag>> {
  size_t operator()(const rnicd::StrongId<Tag>& id) const noexcept { return std::hash<uint64_t>{}(id.value); }
};
