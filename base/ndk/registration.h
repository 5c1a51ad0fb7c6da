#pragma once

#include <cstdint>
#include <memory>

#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd {

// One entry of an MDL chain: a run of bytes of one memory object and the address at which its owner knows it.
// Source: MdlEntry in types.proto, which has the rules.
struct MdlEntry {
  MemoryObjectId memory_id;
  // Bytes from the start of the memory object.
  uint64_t byte_offset = 0;
  // Bytes; at least 1.
  uint64_t byte_count = 0;
  VirtualAddress virtual_address;
  // In a client: keeps the memory attached for as long as something made from this entry uses it. Empty when the caller
  // keeps it, and in the daemon.
  std::shared_ptr<const void> owner;
};

// Address, length and tokens of a registered region, as its owner sees them.
struct Registration {
  // Address of the first byte, as used by peers and SGEs.
  VirtualAddress base_address;
  // Bytes.
  uint64_t length = 0;
  // For SGEs of its owner.
  LocalToken local_token;
  // For peers; opaque, to be passed on unchanged.
  RemoteToken remote_token;
};

}  // namespace rnicd
