#pragma once

#include <cstdint>

namespace rnicd::core {

// Amounts that cost the daemon about as much time as a small request: a tenth of a millisecond. So many count as one
// more request against the rates of their session and tenant.

// Pages that are made, filled with zeros and later freed.
inline constexpr uint64_t kPopulatedBytesPerRequest = uint64_t{128} << 10;
// Pages that exist, and are pinned and unpinned.
inline constexpr uint64_t kRegisteredBytesPerRequest = uint64_t{1} << 20;

// Regions of one ProvisionMemory, apart from their bytes.
inline constexpr uint64_t kProvisionedRegionsPerRequest = 64;

}  // namespace rnicd::core
