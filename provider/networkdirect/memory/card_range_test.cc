#include "provider/networkdirect/memory/card_range.h"

#include <gtest/gtest.h>

#include <array>

namespace rnicd::provider {
namespace {

constexpr AccessRights kReadOnly{};
constexpr AccessRights kWritable{.local_write = true};
constexpr AccessRights kSink{.local_write = true, .read_sink = true};

// Client addresses [1000, 1300): 100 bytes at 5000, then 200 at 9000.
CardRange TwoSegments(const AccessRights& rights = kSink) {
  return {.base = {1000},
          .length = 300,
          .rights = rights,
          .segments = {{.address = 5000, .length = 100, .local_token = 1, .remote_token = 11},
                       {.address = 9000, .length = 200, .local_token = 2, .remote_token = 12}}};
}

uint64_t AddressOf(const ND2_SGE& entry) { return reinterpret_cast<uint64_t>(entry.Buffer); }

ND2_SGE Entry(uint64_t address, ULONG length, UINT32 token) {
  return {.Buffer = reinterpret_cast<void*>(address), .BufferLength = length, .MemoryRegionToken = token};
}

TEST(CardRange, AnEntryOverASeamBecomesOneForEachSegment) {
  CardEntries entries;
  ASSERT_TRUE(AppendLocal(TwoSegments(), {1090}, 30, LocalUse::kSource, entries));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(AddressOf(entries[0]), 5090u);
  EXPECT_EQ(entries[0].BufferLength, 10u);
  EXPECT_EQ(entries[0].MemoryRegionToken, 1u);
  EXPECT_EQ(AddressOf(entries[1]), 9000u);
  EXPECT_EQ(entries[1].BufferLength, 20u);
  EXPECT_EQ(entries[1].MemoryRegionToken, 2u);
}

TEST(CardRange, WhatIsNotInsideIsRefused) {
  const auto takes = [](uint64_t address, uint32_t length) {
    CardEntries entries;
    return AppendLocal(TwoSegments(), {address}, length, LocalUse::kSource, entries);
  };
  EXPECT_TRUE(takes(1000, 300));
  EXPECT_TRUE(takes(1299, 1));
  EXPECT_FALSE(takes(999, 1));
  EXPECT_FALSE(takes(1000, 301));
  EXPECT_FALSE(takes(1300, 1));
  EXPECT_FALSE(takes(UINT64_MAX, 2)) << "no address wraps around";
  RemoteParts parts;
  EXPECT_FALSE(AppendRemote(TwoSegments(), {1000}, 301, parts));
  EXPECT_FALSE(AppendRemote(TwoSegments(), {1001}, UINT64_MAX, parts));
}

TEST(CardRange, ASinkNeedsTheLocalWriteRightAndThatOfAReadItsOwn) {
  const auto permits = [](const AccessRights& rights, LocalUse use) {
    CardEntries entries;
    return AppendLocal(TwoSegments(rights), {1000}, 1, use, entries);
  };
  EXPECT_TRUE(permits(kReadOnly, LocalUse::kSource));
  EXPECT_FALSE(permits(kReadOnly, LocalUse::kSink));
  EXPECT_TRUE(permits(kWritable, LocalUse::kSink));
  EXPECT_FALSE(permits(kWritable, LocalUse::kReadSink));
  EXPECT_TRUE(permits(kSink, LocalUse::kReadSink));
}

TEST(CardRange, ATransferIsDividedAtTheSeamsOfBothSides) {
  const std::array<ND2_SGE, 2> entries = {Entry(100, 70, 1), Entry(500, 60, 2)};
  RemoteParts parts;
  ASSERT_TRUE(AppendRemote(TwoSegments(), {1000}, 130, parts));
  const std::vector<CardRequestPart> requests = DivideTransfer(entries, parts, 16);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].remote_address, 5000u);
  EXPECT_EQ(requests[0].remote_token, 11u);
  ASSERT_EQ(requests[0].entries.size(), 2u);
  EXPECT_EQ(requests[0].entries[1].BufferLength, 30u);
  EXPECT_EQ(requests[1].remote_address, 9000u);
  EXPECT_EQ(requests[1].remote_token, 12u);
  ASSERT_EQ(requests[1].entries.size(), 1u);
  EXPECT_EQ(AddressOf(requests[1].entries[0]), 530u);
  EXPECT_EQ(requests[1].entries[0].BufferLength, 30u);
}

TEST(CardRange, ATransferOfTooManyEntriesIsDividedByTheirNumber) {
  const std::array<ND2_SGE, 3> entries = {Entry(100, 10, 1), Entry(200, 10, 1), Entry(300, 10, 1)};
  const RemotePart part{.address = 7000, .token = 9, .length = 30};
  const std::vector<CardRequestPart> requests = DivideTransfer(entries, {&part, 1}, 2);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].entries.size(), 2u);
  EXPECT_EQ(requests[1].entries.size(), 1u);
  EXPECT_EQ(requests[1].remote_address, 7020u);
}

}  // namespace
}  // namespace rnicd::provider
