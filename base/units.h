#pragma once

#include <compare>
#include <cstdint>

namespace rnicd {

// The page size of NDK's rules, in bytes. Page counts of registrations are in this unit, regardless of the size of the
// pages behind the memory.
inline constexpr uint64_t kNdkPageBytes = 4096;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// An address as used by a client and its peers. Never dereferenced by the daemon.
struct VirtualAddress {
  uint64_t value = 0;
  friend auto operator<=>(const VirtualAddress&, const VirtualAddress&) = default;
};

// A page, or a byte within one, as addressed by the adapter. Meaningful only to the session and adapter it was created
// for.
// Source: NDK_LOGICAL_ADDRESS.
struct LogicalAddress {
  uint64_t value = 0;
  friend auto operator<=>(const LogicalAddress&, const LogicalAddress&) = default;
};

// The key of a memory region in the SGEs of its owner.
struct LocalToken {
  uint32_t value = 0;
  friend auto operator<=>(const LocalToken&, const LocalToken&) = default;
};

// The key of a memory region that its owner hands to peers.
struct RemoteToken {
  uint32_t value = 0;
  friend auto operator<=>(const RemoteToken&, const RemoteToken&) = default;
};

}  // namespace rnicd
