#include "wire/memory.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::wire {
namespace {

TEST(MemoryWire, ChainsArriveEntryByEntryWithoutTheirOwners) {
  const MdlEntry chain[] = {
      {.memory_id = {1}, .byte_offset = 2, .byte_count = 3, .virtual_address = {4}, .owner = std::make_shared<int>()},
      {.memory_id = {5}, .byte_offset = 6, .byte_count = 7, .virtual_address = {8}}};
  const WireMdlChain wire = ToWire(chain);
  const std::vector<MdlEntry> arrived = FromWire(wire);
  ASSERT_EQ(arrived.size(), std::size(chain));
  for (size_t index = 0; index < arrived.size(); ++index) {
    EXPECT_EQ(arrived[index].memory_id, chain[index].memory_id);
    EXPECT_EQ(arrived[index].byte_offset, chain[index].byte_offset);
    EXPECT_EQ(arrived[index].byte_count, chain[index].byte_count);
    EXPECT_EQ(arrived[index].virtual_address, chain[index].virtual_address);
    EXPECT_EQ(arrived[index].owner, nullptr);
  }
}

TEST(MemoryWire, RegistrationsKeepBothTokensApart) {
  const v1::Registration wire =
      ToWire(Registration{.base_address = {0x7000}, .length = 8192, .local_token = {0xabcd}, .remote_token = {0xef01}});
  EXPECT_EQ(wire.local_token(), 0xabcdu);
  EXPECT_EQ(wire.remote_token(), 0xef01u);
  const Registration registration = FromWire(wire);
  EXPECT_EQ(registration.base_address, VirtualAddress{0x7000});
  EXPECT_EQ(registration.length, 8192u);
  EXPECT_EQ(registration.local_token, LocalToken{0xabcd});
  EXPECT_EQ(registration.remote_token, RemoteToken{0xef01});
}

TEST(MemoryWire, PageSizesArriveAndAnUnknownOneIsRefused) {
  for (const uint64_t bytes : {uint64_t{4096}, uint64_t{2} << 20, uint64_t{1} << 30}) {
    const absl::StatusOr<uint64_t> arrived = PageBytesFromWire(PageSizeToWire(bytes));
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    EXPECT_EQ(*arrived, bytes);
  }
  EXPECT_EQ(PageSizeToWire(0), v1::PAGE_SIZE_UNSPECIFIED);
  EXPECT_EQ(*PageBytesFromWire(v1::PAGE_SIZE_UNSPECIFIED), 4096u);
  const absl::Status refused = PageBytesFromWire(static_cast<v1::PageSize>(9)).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(refused).field, "page_size");
}

}  // namespace
}  // namespace rnicd::wire
