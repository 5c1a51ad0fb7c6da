#include "ring/geometry.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "base/units.h"
#include "ring/ring_fixture_test.h"

namespace rnicd::ring {
namespace {

TEST(RingGeometry, PartsLieBehindEachOtherAndFillWholePages) {
  for (uint32_t entries = kEntriesMin; entries <= kEntriesMax; entries *= 2) {
    for (const uint32_t payload : {kPayloadBytesMin, kPayloadBytesMin + 1, kPayloadBytesMax}) {
      const RingGeometry geometry = MustMakeRing(entries, payload);
      EXPECT_EQ(geometry.submission_offset, sizeof(RingHeader));
      EXPECT_EQ(geometry.completion_offset, geometry.submission_offset + entries * kEntryBytes);
      EXPECT_EQ(geometry.payload_offset, geometry.completion_offset + entries * kEntryBytes);
      EXPECT_GE(geometry.payload_bytes, payload);
      EXPECT_LT(geometry.payload_bytes, payload + kNdkPageBytes);
      EXPECT_EQ(geometry.payload_bytes % kPayloadUnit, 0u);
      EXPECT_EQ(geometry.file_bytes() % kNdkPageBytes, 0u);
    }
  }
}

TEST(RingGeometry, EntriesAreAPowerOfTwoInsideTheirLimits) {
  for (const uint32_t entries : {0U, 1U, 3U, 127U, kEntriesMax + 1, kEntriesMax * 2, 1U << 31, UINT32_MAX}) {
    const absl::StatusOr<RingGeometry> refused = MakeRingGeometry(entries, kPayloadBytesMin);
    EXPECT_TRUE(FailedWith(refused.status(), ErrorReason::FIELD_OUT_OF_RANGE)) << entries;
    EXPECT_EQ(ErrorInfoOf(refused.status()).field, "entries");
  }
}

TEST(RingGeometry, PayloadHasLimits) {
  for (const uint32_t payload : {0U, kPayloadBytesMin - 1, kPayloadBytesMax + 1, UINT32_MAX}) {
    const absl::StatusOr<RingGeometry> refused = MakeRingGeometry(kEntriesMin, payload);
    EXPECT_TRUE(FailedWith(refused.status(), ErrorReason::FIELD_OUT_OF_RANGE)) << payload;
    EXPECT_EQ(ErrorInfoOf(refused.status()).field, "payload_bytes");
  }
}

TEST(QueueGeometry, EntriesAreTheNextPowerOfTwo) {
  EXPECT_EQ(MakeQueueGeometry(1).entries, 1u);
  EXPECT_EQ(MakeQueueGeometry(5).entries, 8u);
  EXPECT_EQ(MakeQueueGeometry(1U << 30).entries, 1U << 30);
  EXPECT_EQ(MakeQueueGeometry(5).file_bytes(), kNdkPageBytes);
  EXPECT_EQ(MakeQueueGeometry(64).file_bytes(), 2 * kNdkPageBytes);
  EXPECT_EQ(MakeQueueGeometry(1U << 30).file_bytes(), (size_t{1} << 36) + kNdkPageBytes);
}

TEST(Geometry, DescriptionsSayWhereThePartsAre) {
  const RingGeometry ring = MustMakeRing(8);
  const Description of_ring = Describe(ring);
  EXPECT_EQ(of_ring.magic, kRingMagic);
  EXPECT_EQ(of_ring.version, kVersion);
  EXPECT_EQ(of_ring.header_bytes, sizeof(RingHeader));
  EXPECT_EQ(of_ring.submission_offset, ring.submission_offset);
  EXPECT_EQ(of_ring.completion_offset, ring.completion_offset);
  EXPECT_EQ(of_ring.entries, 8u);
  EXPECT_EQ(of_ring.payload_offset, ring.payload_offset);
  EXPECT_EQ(of_ring.payload_bytes, ring.payload_bytes);

  const Description of_queue = Describe(MakeQueueGeometry(8));
  EXPECT_EQ(of_queue.magic, kQueueMagic);
  EXPECT_EQ(of_queue.header_bytes, sizeof(QueueHeader));
  EXPECT_EQ(of_queue.submission_offset, 0u);
  EXPECT_EQ(of_queue.completion_offset, sizeof(QueueHeader));
  EXPECT_EQ(of_queue.entries, 8u);
}

}  // namespace
}  // namespace rnicd::ring
