#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace rnicd {

// The key with which SGEs name logical addresses. It never works for a peer, so it does not convert to RemoteToken.
// Source: NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN.
struct PrivilegedToken {
  uint32_t value = 0;
  friend auto operator<=>(const PrivilegedToken&, const PrivilegedToken&) = default;
};

// A piece of memory that a request reads or writes. Views live as long as the call. Source: NDK_SGE.
struct Sge {
  // With a local token an address inside its region, with the privileged token a logical address.
  uint64_t address = 0;
  // Bytes; 0 is allowed, 4 GiB and more are not.
  uint64_t length = 0;
  // A region's local token, or the value of the domain's privileged token.
  LocalToken token;
  // With kOpFlagInline: the bytes themselves. Address and token are ignored then.
  std::span<const std::byte> inline_data;

  // Bytes of this process, inside a region that is registered at their addresses.
  static Sge Of(std::span<const std::byte> bytes, LocalToken token) {
    return {.address = reinterpret_cast<uintptr_t>(bytes.data()), .length = bytes.size(), .token = token};
  }
  // An address inside the token's region.
  static Sge At(VirtualAddress address, uint64_t length, LocalToken token) {
    return {.address = address.value, .length = length, .token = token};
  }
  // An address inside a logical address mapping: usually one SGE for each page, since pages need not be adjacent.
  static Sge At(LogicalAddress address, uint64_t length, PrivilegedToken token) {
    return {.address = address.value, .length = length, .token = LocalToken{token.value}};
  }
  // The bytes themselves, for a request with kOpFlagInline.
  static Sge Inline(std::span<const std::byte> bytes) {
    return {.address = 0, .length = bytes.size(), .token = {}, .inline_data = bytes};
  }
};
using Sges = std::vector<Sge>;

// The peer's memory, as described by the peer; any address inside the token's range.
struct RemoteMemory {
  VirtualAddress address;
  RemoteToken token;
};

}  // namespace rnicd
