#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/networkdirect/card/nd2.h"

namespace rnicd::provider {

// A part of a client's range that the card has under one pair of its tokens.
struct CardSegment {
  // Where the part begins in this process, which is the address that the card knows.
  uint64_t address = 0;
  uint64_t length = 0;
  UINT32 local_token = 0;
  UINT32 remote_token = 0;
};

// What a token of a client stands for: its addresses, and the segments that lie at them, end to end. Network Direct has
// neither base addresses nor registrations of several pieces, so the daemon translates each request.
struct CardRange {
  VirtualAddress base;
  uint64_t length = 0;
  AccessRights rights;
  std::vector<CardSegment> segments;
};

// Use of local memory by a request.
enum class LocalUse : uint8_t { kSource, kSink, kReadSink };

using CardEntries = absl::InlinedVector<ND2_SGE, 4>;
// A part of the memory of the peer, by the address and token of its card.
struct RemotePart {
  uint64_t address = 0;
  UINT32 token = 0;
  uint64_t length = 0;
};
using RemoteParts = absl::InlinedVector<RemotePart, 2>;
// A request as the card takes it.
struct CardRequestPart {
  CardEntries entries;
  uint64_t remote_address = 0;
  UINT32 remote_token = 0;
};

// Appends the bytes [address, address + length) as entries of the card. False, and nothing usable is appended, if they
// are not in the range or the range does not permit the use. A read's sink needs the right of its own, as
// NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED is never reported.
bool AppendLocal(const CardRange& range, VirtualAddress address, uint32_t length, LocalUse use, CardEntries& entries);
// Appends the bytes as parts of the peer's memory; false if they are not in the range. Rights are the card's to check.
bool AppendRemote(const CardRange& range, VirtualAddress address, uint64_t length, RemoteParts& parts);

// Divides a transfer between `entries` and `parts` into requests of at most `max_entries` entries (at least 1), each
// with one part. Precondition: both have the same number of bytes.
std::vector<CardRequestPart> DivideTransfer(std::span<const ND2_SGE> entries, std::span<const RemotePart> parts,
                                            uint32_t max_entries);

}  // namespace rnicd::provider
