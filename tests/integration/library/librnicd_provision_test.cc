// librnicd: memory that is ready. Regions in one call, many memories in two, page tables that are filled.
#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/ndk/access_rights.h"
#include "client/cpp/memory_region.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// Page faults of this thread while it writes one byte into each page.
// Without the sanitizer's shadow memory, whose faults are not the client's.
[[gnu::no_sanitize_address]] long FaultsOfFirstAccess(std::span<std::byte> bytes) {
  rusage before = {};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &before), 0);
  volatile std::byte* const first = bytes.data();
  for (size_t offset = 0; offset < bytes.size(); offset += kClientPage) {
    first[offset] = std::byte{1};
  }
  rusage after = {};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &after), 0);
  return after.ru_minflt - before.ru_minflt;
}

std::vector<RegionRange> Ranges(uint64_t count, uint64_t bytes) {
  std::vector<RegionRange> ranges;
  for (uint64_t index = 0; index < count; ++index) {
    ranges.push_back({.offset = index * bytes, .length = bytes, .flags = kMrFlagRemoteWrite});
  }
  return ranges;
}

TEST_F(Librnicd, ProvisionedRegionsKnowTheirTokensAndAreClosedAsOthers) {
  const Client client = MustConnect();
  {
    const Provisioned provisioned =
        Must(MemoryRegion::Provision(client, {.size = 4 * kClientPage}, Ranges(4, kClientPage)));
    EXPECT_EQ(provisioned.memory.size(), 4 * kClientPage);
    EXPECT_EQ(provisioned.memory.page_size(), PageSize::k4KiB);
    ASSERT_EQ(provisioned.regions.size(), 4u);
    std::set<uint32_t> local_tokens;
    std::set<uint32_t> remote_tokens;
    for (size_t index = 0; index < 4; ++index) {
      ASSERT_TRUE(provisioned.regions[index].ok()) << provisioned.regions[index].status();
      const MemoryRegion& region = *provisioned.regions[index];
      EXPECT_TRUE(region.registered());
      EXPECT_EQ(region.base_address().value, provisioned.memory.address().value + index * kClientPage);
      EXPECT_EQ(region.length(), kClientPage);
      local_tokens.insert(region.local_token().value);
      remote_tokens.insert(region.remote_token().value);
      const v1::RegionInfo info = AdminRegion(daemon(), region.id().value).value_or(v1::RegionInfo());
      EXPECT_EQ(info.base_virtual_address(), region.base_address().value);
    }
    EXPECT_EQ(local_tokens.size(), 4u);
    EXPECT_EQ(remote_tokens.size(), 4u);
    EXPECT_EQ(UsedBy(client, "regions"), 4u);
  }
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
}

// What was not fetched before the response is not told any more, so an allocation may be silent.
TEST_F(Librnicd, ALongAllocationTellsHowFarItIs) {
  constexpr uint64_t kSize = 256 * kMiB;
  const Client client = MustConnect();
  std::vector<uint64_t> seen;
  const auto note = [&](uint64_t populated_bytes, uint64_t size) {
    EXPECT_EQ(size, kSize);
    seen.push_back(populated_bytes);
  };
  EXPECT_TRUE(Eventually([&] {
    seen.clear();
    (void)Must(Memory::Allocate(client,
                                {.size = kSize, .page_size = PageSize::k4KiB, .populate = false, .on_progress = note}));
    return !seen.empty();
  }));
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_LT(seen.back(), kSize);
}

TEST_F(Librnicd, ARangeThatCannotBeProvisionedDoesNotStopTheOthers) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 2 * kClientPage);
  std::vector<RegionRange> ranges = Ranges(3, kClientPage);
  ranges[0].flags = 1U << 31;
  const MemoryRegion::Outcomes regions = Must(MemoryRegion::Provision(memory, ranges));
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_EQ(ErrorInfoOf(regions[0].status()).field, "items[0].flags");
  EXPECT_TRUE(regions[1].ok());
  EXPECT_EQ(ErrorInfoOf(regions[2].status()).reason, ErrorReason::MDL_RANGE_OUTSIDE_MEMORY);
  EXPECT_EQ(UsedBy(client, "regions"), 1u);
}

TEST_F(Librnicd, ProvisioningNothingIsRefusedAndLeavesNoMemory) {
  const Client client = MustConnect();
  const auto refused = MemoryRegion::Provision(client, {.size = kClientPage}, {});
  EXPECT_EQ(ErrorInfoOf(refused.status()).reason, ErrorReason::BATCH_SIZE);
  EXPECT_TRUE(Eventually([&] { return UsedBy(client, "memory_objects") == 0; }));
}

TEST_F(Librnicd, ABatchOfMemoryHasOneOutcomeForEach) {
  const Client client = MustConnect();
  const std::vector<AllocateOptions> options = {{.size = kClientPage}, {.size = 1}, {.size = 3 * kClientPage}};
  const auto memories = Must(Memory::AllocateBatch(client, options));
  ASSERT_EQ(memories.size(), 3u);
  EXPECT_EQ(memories[0]->size(), kClientPage);
  EXPECT_EQ(ErrorInfoOf(memories[1].status()).field, "items[1].size");
  EXPECT_TRUE(MemoryRegion::Register(*memories[2], 0).ok());
}

TEST_F(Librnicd, FirstAccessToAllocatedMemoryIsNoPageFault) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 4 * kMiB);
  EXPECT_LT(FaultsOfFirstAccess(memory.bytes()), 64);
}

TEST_F(Librnicd, ThePageTableIsLeftToTheFirstAccessIfAsked) {
  const Client client = MustConnect();
  const Memory memory = Must(Memory::Allocate(client, {.size = 4 * kMiB, .populate = false}));
  EXPECT_GE(FaultsOfFirstAccess(memory.bytes()), 64);
}

}  // namespace
}  // namespace rnicd::test
