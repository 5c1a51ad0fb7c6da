#include "ring/geometry.h"

#include <bit>

#include "base/status.h"
#include "base/units.h"

namespace rnicd::ring {
namespace {

size_t WholePages(size_t bytes) { return (bytes + kNdkPageBytes - 1) / kNdkPageBytes * kNdkPageBytes; }

}  // namespace

absl::StatusOr<RingGeometry> MakeRingGeometry(uint32_t entries, uint32_t payload_bytes) {
  if (!IsPowerOfTwo(entries) || entries < kEntriesMin || entries > kEntriesMax) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "entries");
  }
  if (payload_bytes < kPayloadBytesMin || payload_bytes > kPayloadBytesMax) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "payload_bytes");
  }
  RingGeometry geometry{.entries = entries, .submission_offset = sizeof(RingHeader)};
  geometry.completion_offset = geometry.submission_offset + entries * kEntryBytes;
  geometry.payload_offset = geometry.completion_offset + entries * kEntryBytes;
  geometry.payload_bytes =
      static_cast<uint32_t>(WholePages(size_t{geometry.payload_offset} + payload_bytes)) - geometry.payload_offset;
  return geometry;
}

size_t QueueGeometry::file_bytes() const { return WholePages(completion_offset + size_t{entries} * kEntryBytes); }

QueueGeometry MakeQueueGeometry(uint32_t depth) {
  return {.entries = std::bit_ceil(depth), .completion_offset = sizeof(QueueHeader)};
}

Description Describe(const RingGeometry& geometry) {
  return {.magic = kRingMagic,
          .version = kVersion,
          .header_bytes = sizeof(RingHeader),
          .submission_offset = geometry.submission_offset,
          .completion_offset = geometry.completion_offset,
          .entries = geometry.entries,
          .payload_offset = geometry.payload_offset,
          .payload_bytes = geometry.payload_bytes};
}

Description Describe(const QueueGeometry& geometry) {
  return {.magic = kQueueMagic,
          .version = kVersion,
          .header_bytes = sizeof(QueueHeader),
          .completion_offset = geometry.completion_offset,
          .entries = geometry.entries};
}

}  // namespace rnicd::ring
