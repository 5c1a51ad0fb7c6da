#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/registration.h"
#include "base/ndk/work_request.h"

// What travels in a ring's payload area: chains of work requests, and MDL chains.
namespace rnicd::ring {

// Bytes that the request takes in the payload area. Errors: TRANSFER_TOO_LONG for an SGE of 4 GiB or more, with
// "write.sges" or the like as its field; SGE_COUNT for more SGEs or pages than a record can count; FIELD_OUT_OF_RANGE
// for a request that names no operation.
absl::StatusOr<size_t> EncodedBytes(const WorkRequest& request);
// Writes the request, whose EncodedBytes are known, and returns how many they were.
size_t Encode(const WorkRequest& request, std::byte* to);

// Reads `count` requests, and replaces `chain` by them: their views lead into `payload`. It refuses what cannot be
// decoded, and does not validate the requests themselves. Errors: BATCH_SIZE unless `count` is 1 to kChainMax;
// FIELD_OUT_OF_RANGE, with "requests[3].count" or the like as its field, for a record that is longer than the payload,
// an unknown operation, or reserved bytes that are not 0.
absl::Status DecodeChain(std::span<const uint64_t> payload, uint32_t count, std::vector<WorkRequest>* chain);

// Bytes that an entry of an MDL chain takes in the payload area.
inline constexpr size_t kMdlBytes = 32;
void Encode(const MdlEntry& entry, std::byte* to);
// Replaces `chain` by `count` entries. Errors: FIELD_OUT_OF_RANGE when the payload is shorter.
absl::Status DecodeMdlChain(std::span<const uint64_t> payload, uint32_t count, std::vector<MdlEntry>* chain);

}  // namespace rnicd::ring
