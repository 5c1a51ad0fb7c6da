#include "provider/networkdirect/memory/card_range.h"

#include <algorithm>

#include "base/checked_range.h"

namespace rnicd::provider {
namespace {

bool Permits(const AccessRights& rights, LocalUse use) {
  return use == LocalUse::kSource || (rights.local_write && (use == LocalUse::kSink || rights.read_sink));
}

// Calls visit(segment, offset in it, bytes) for the parts of [address, address + length) in order. False if they are
// not in the range.
template <typename Visit>
bool VisitSegments(const CardRange& range, VirtualAddress address, uint64_t length, Visit visit) {
  const auto whole = CheckedRange::Make(range.base.value, range.length);
  if (!whole.has_value() || !whole->Contains(address.value, length)) {
    return false;
  }
  uint64_t offset = address.value - range.base.value;
  for (const CardSegment& segment : range.segments) {
    if (length == 0) {
      break;
    }
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const uint64_t count = std::min(segment.length - offset, length);
    visit(segment, offset, count);
    length -= count;
    offset = 0;
  }
  return length == 0;
}

}  // namespace

bool AppendLocal(const CardRange& range, VirtualAddress address, uint32_t length, LocalUse use, CardEntries& entries) {
  return Permits(range.rights, use) &&
         VisitSegments(range, address, length, [&](const CardSegment& segment, uint64_t offset, uint64_t count) {
           entries.push_back({.Buffer = reinterpret_cast<void*>(segment.address + offset),
                              .BufferLength = static_cast<ULONG>(count),
                              .MemoryRegionToken = segment.local_token});
         });
}

bool AppendRemote(const CardRange& range, VirtualAddress address, uint64_t length, RemoteParts& parts) {
  return VisitSegments(range, address, length, [&](const CardSegment& segment, uint64_t offset, uint64_t count) {
    parts.push_back({.address = segment.address + offset, .token = segment.remote_token, .length = count});
  });
}

std::vector<CardRequestPart> DivideTransfer(std::span<const ND2_SGE> entries, std::span<const RemotePart> parts,
                                            uint32_t max_entries) {
  std::vector<CardRequestPart> requests;
  size_t index = 0;
  ULONG used = 0;  // Bytes of entries[index] that are in a request.
  for (const RemotePart& part : parts) {
    uint64_t done = 0;
    while (done < part.length) {
      CardRequestPart& request = requests.emplace_back(
          CardRequestPart{.entries = {}, .remote_address = part.address + done, .remote_token = part.token});
      while (done < part.length && request.entries.size() < max_entries) {
        const ND2_SGE& entry = entries[index];
        const auto count = static_cast<ULONG>(std::min<uint64_t>(entry.BufferLength - used, part.length - done));
        request.entries.push_back({.Buffer = static_cast<std::byte*>(entry.Buffer) + used,
                                   .BufferLength = count,
                                   .MemoryRegionToken = entry.MemoryRegionToken});
        done += count;
        used += count;
        if (used == entry.BufferLength) {
          ++index;
          used = 0;
        }
      }
    }
  }
  return requests;
}

}  // namespace rnicd::provider
