#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/registration.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/types.pb.h"

namespace rnicd::wire {

v1::MdlEntry ToWire(const MdlEntry& entry);
// Without an owner.
MdlEntry FromWire(const v1::MdlEntry& entry);

using WireMdlChain = google::protobuf::RepeatedPtrField<v1::MdlEntry>;
WireMdlChain ToWire(std::span<const MdlEntry> chain);
std::vector<MdlEntry> FromWire(const WireMdlChain& chain);

v1::Registration ToWire(const Registration& registration);
Registration FromWire(const v1::Registration& registration);

// PAGE_SIZE_UNSPECIFIED for a size that has no value in the enum.
v1::PageSize PageSizeToWire(uint64_t page_bytes);
// Bytes of a page. Errors: FIELD_OUT_OF_RANGE for an unknown PageSize.
absl::StatusOr<uint64_t> PageBytesFromWire(v1::PageSize page_size);

}  // namespace rnicd::wire
