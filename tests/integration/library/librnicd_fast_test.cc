// The C++ library's fast regions, logical mappings and windows as objects; librnicd_queue_test.cc posts to them.
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_window.h"
#include "tests/integration/library/librnicd_fixture.h"

namespace rnicd::test {
namespace {

TEST_F(Librnicd, FastRegionHasItsTokensAndIsGivenBack) {
  const Client client = MustConnect();
  {
    const FastRegion region = Must(FastRegion::Create(client, {.max_pages = 8, .remote_access = true}));
    EXPECT_NE(region.id(), MemoryRegionId{});
    EXPECT_NE(region.local_token(), LocalToken{});
    EXPECT_NE(Must(region.GetRemoteToken()), RemoteToken{});
    EXPECT_EQ(UsedBy(client, "regions"), 1u);
    EXPECT_EQ(UsedBy(client, "fast_register_pages"), 8u);
  }
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
}

TEST_F(Librnicd, ClosedOrMovedFromFastRegionRefusesEveryCall) {
  const Client client = MustConnect();
  FastRegion region = Must(FastRegion::Create(client, {.max_pages = 8}));
  FastRegion taken = std::move(region);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  for (FastRegion* gone : {&region, &taken}) {
    EXPECT_EQ(gone->id(), MemoryRegionId{});
    EXPECT_EQ(gone->local_token(), LocalToken{});
    EXPECT_TRUE(FailedWith(gone->GetRemoteToken().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

TEST_F(Librnicd, MappingNamesThePagesOfItsPart) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 8 * kClientPage);
  LogicalMapping mapping = Must(LogicalMapping::Build(memory, memory.bytes().subspan(4095, 2)));
  EXPECT_EQ(mapping.pages().size(), 2u);
  EXPECT_EQ(mapping.fbo(), 4095u);
  EXPECT_EQ(mapping.length(), 2u);
  EXPECT_EQ(mapping.AsRegistration().base_address.value, memory.address().value + 4095);
  EXPECT_EQ(mapping.AsRegistration().pages.size(), 2u);
  EXPECT_EQ(mapping.AsRegistration().fbo, 4095u);
  EXPECT_EQ(Must(LogicalMapping::Build(memory)).pages().size(), 8u);
  EXPECT_EQ(UsedBy(client, "logical_mappings"), 1u) << "that of all pages is gone";
  EXPECT_TRUE(mapping.Release().ok());
  EXPECT_EQ(UsedBy(client, "logical_mappings"), 0u);
  EXPECT_TRUE(mapping.pages().empty());
  EXPECT_TRUE(mapping.AsRegistration().pages.empty());
  EXPECT_TRUE(FailedWith(mapping.Release(), ErrorReason::OBJECT_NOT_FOUND));
}

TEST_F(Librnicd, MappingOfAChainKeepsItsMemoryAndRefusalsLeaveNone) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 8 * kClientPage);
  std::optional<Memory> other = MustAllocate(client, kClientPage);
  const std::vector<std::byte> foreign(10);
  EXPECT_TRUE(FailedWith(LogicalMapping::Build(memory, foreign).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  std::vector<MdlEntry> chain = {Must(memory.Entry(memory.bytes())), Must(other->Entry(other->bytes()))};
  chain[1].virtual_address.value = chain[0].virtual_address.value + memory.size();
  EXPECT_TRUE(FailedWith(LogicalMapping::BuildChain(client, chain, 0).status(), ErrorReason::LENGTH_ZERO));
  EXPECT_EQ(UsedBy(client, "logical_mappings"), 0u);
  {
    const LogicalMapping mapping = Must(LogicalMapping::BuildChain(client, chain, 9 * kClientPage));
    EXPECT_EQ(mapping.pages().size(), 9u);
    chain.clear();
    other.reset();
    EXPECT_EQ(UsedBy(client, "memory_objects"), 2u);
  }
  EXPECT_EQ(UsedBy(client, "logical_mappings"), 0u);
  EXPECT_EQ(UsedBy(client, "memory_objects"), 1u);
}

TEST_F(Librnicd, WindowIsGivenBackAndRefusesEveryCallWhenClosedOrMovedFrom) {
  const Client client = MustConnect();
  {
    MemoryWindow window = Must(MemoryWindow::Create(client));
    EXPECT_EQ(UsedBy(client, "windows"), 1u);
    MemoryWindow taken = std::move(window);
    // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
    EXPECT_EQ(window.id(), MemoryWindowId{});
    EXPECT_TRUE(FailedWith(window.Close(), ErrorReason::OBJECT_NOT_FOUND));
    const MemoryWindow second = Must(MemoryWindow::Create(client));
    EXPECT_TRUE(taken.Close().ok());
    EXPECT_TRUE(FailedWith(taken.GetRemoteToken().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_EQ(UsedBy(client, "windows"), 1u);
  }
  EXPECT_EQ(UsedBy(client, "windows"), 0u);
}

}  // namespace
}  // namespace rnicd::test
