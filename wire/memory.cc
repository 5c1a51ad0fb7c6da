#include "wire/memory.h"

#include "base/status.h"

namespace rnicd::wire {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr uint64_t kGiantPageBytes = uint64_t{1} << 30;

}  // namespace

v1::MdlEntry ToWire(const MdlEntry& entry) {
  v1::MdlEntry wire;
  wire.set_memory_id(entry.memory_id.value);
  wire.set_byte_offset(entry.byte_offset);
  wire.set_byte_count(entry.byte_count);
  wire.set_virtual_address(entry.virtual_address.value);
  return wire;
}

MdlEntry FromWire(const v1::MdlEntry& entry) {
  return {.memory_id = MemoryObjectId{entry.memory_id()},
          .byte_offset = entry.byte_offset(),
          .byte_count = entry.byte_count(),
          .virtual_address = VirtualAddress{entry.virtual_address()}};
}

WireMdlChain ToWire(std::span<const MdlEntry> chain) {
  WireMdlChain wire;
  wire.Reserve(static_cast<int>(chain.size()));
  for (const MdlEntry& entry : chain) {
    *wire.Add() = ToWire(entry);
  }
  return wire;
}

std::vector<MdlEntry> FromWire(const WireMdlChain& chain) {
  std::vector<MdlEntry> entries;
  entries.reserve(static_cast<size_t>(chain.size()));
  for (const v1::MdlEntry& entry : chain) {
    entries.push_back(FromWire(entry));
  }
  return entries;
}

v1::Registration ToWire(const Registration& registration) {
  v1::Registration wire;
  wire.set_base_virtual_address(registration.base_address.value);
  wire.set_length(registration.length);
  wire.set_local_token(registration.local_token.value);
  wire.set_remote_token(registration.remote_token.value);
  return wire;
}

Registration FromWire(const v1::Registration& registration) {
  return Registration{.base_address = VirtualAddress{registration.base_virtual_address()},
                      .length = registration.length(),
                      .local_token = LocalToken{registration.local_token()},
                      .remote_token = RemoteToken{registration.remote_token()}};
}

v1::PageSize PageSizeToWire(uint64_t page_bytes) {
  switch (page_bytes) {
    case kNdkPageBytes:
      return v1::PAGE_SIZE_4KIB;
    case kHugePageBytes:
      return v1::PAGE_SIZE_2MIB;
    case kGiantPageBytes:
      return v1::PAGE_SIZE_1GIB;
    default:
      return v1::PAGE_SIZE_UNSPECIFIED;
  }
}

absl::StatusOr<uint64_t> PageBytesFromWire(v1::PageSize page_size) {
  switch (page_size) {
    case v1::PAGE_SIZE_UNSPECIFIED:
    case v1::PAGE_SIZE_4KIB:
      return kNdkPageBytes;
    case v1::PAGE_SIZE_2MIB:
      return kHugePageBytes;
    case v1::PAGE_SIZE_1GIB:
      return kGiantPageBytes;
    default:
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_size");
  }
}

}  // namespace rnicd::wire
