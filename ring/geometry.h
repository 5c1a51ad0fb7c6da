#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "ring/layout.h"

namespace rnicd::ring {

// Where the parts of a ring's file are. Each side keeps its own copy: the client can change the content of the file at
// any time.
struct RingGeometry {
  // Submissions, and as many completions.
  uint32_t entries = 0;
  uint32_t submission_offset = 0;
  uint32_t completion_offset = 0;
  uint32_t payload_offset = 0;
  uint32_t payload_bytes = 0;

  size_t file_bytes() const { return size_t{payload_offset} + payload_bytes; }
};

// The file of a ring with so many entries and at least so much payload, which is increased to whole pages. Errors:
// FIELD_OUT_OF_RANGE for `entries` or `payload_bytes`.
absl::StatusOr<RingGeometry> MakeRingGeometry(uint32_t entries, uint32_t payload_bytes);

// The same of a mapped completion queue.
struct QueueGeometry {
  uint32_t entries = 0;
  uint32_t completion_offset = 0;

  size_t file_bytes() const;
};

// The file of a mapped completion queue that never holds more than `depth` completions; above 0, at most 2^30.
QueueGeometry MakeQueueGeometry(uint32_t depth);

Description Describe(const RingGeometry& geometry);
Description Describe(const QueueGeometry& geometry);

}  // namespace rnicd::ring
