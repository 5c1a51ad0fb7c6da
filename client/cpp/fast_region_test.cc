#include "client/cpp/fast_region.h"

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory_window.h"

namespace rnicd::inline client {
namespace {

class FastRegionTest : public testing::Test {
 protected:
  FakeDaemon daemon_;
  absl::StatusOr<Client> client_ = Client::Connect({.socket_dir = daemon_.socket_dir()});
  absl::StatusOr<Memory> memory_ = Memory::Allocate(*client_, {.size = 8 * kNdkPageBytes});
};

TEST_F(FastRegionTest, HasItsTokensAndIsGivenBack) {
  {
    const auto region = FastRegion::Create(*client_, {.max_pages = 8, .remote_access = true});
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(region->local_token().value, region->id().value);
    EXPECT_EQ(region->GetRemoteToken()->value, region->id().value << 8);
    EXPECT_EQ(daemon_.state().LiveRegions(), 1u);
  }
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(FastRegionTest, RefusedInitializationLeavesNoRegion) {
  const auto region = FastRegion::Create(*client_, {.max_pages = kFakePagesMax + 1});
  EXPECT_TRUE(FailedWith(region.status(), ErrorReason::PAGE_COUNT_UNSUPPORTED));
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
}

TEST_F(FastRegionTest, ClosedOrMovedFromRegionRefusesEveryCall) {
  auto region = FastRegion::Create(*client_, {.max_pages = 8});
  FastRegion taken = *std::move(region);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(daemon_.state().LiveRegions(), 0u);
  for (FastRegion* gone : {&*region, &taken}) {
    EXPECT_EQ(gone->id(), MemoryRegionId{});
    EXPECT_EQ(gone->local_token(), LocalToken{});
    EXPECT_TRUE(FailedWith(gone->GetRemoteToken().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

TEST_F(FastRegionTest, MappingNamesThePagesOfItsPart) {
  auto mapping = LogicalMapping::Build(*memory_, memory_->bytes().subspan(4095, 2));
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ(mapping->pages().size(), 2u);
  EXPECT_EQ(mapping->fbo(), 4095u);
  EXPECT_EQ(mapping->length(), 2u);
  EXPECT_EQ(mapping->AsRegistration().base_address.value, memory_->address().value + 4095);
  EXPECT_EQ(LogicalMapping::Build(*memory_)->pages().size(), 8u);
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
  EXPECT_TRUE(mapping->Release().ok());
  EXPECT_EQ(daemon_.state().LiveOthers(), 0u);
  EXPECT_TRUE(mapping->pages().empty());
  EXPECT_TRUE(mapping->AsRegistration().pages.empty());
  EXPECT_TRUE(FailedWith(mapping->Release(), ErrorReason::OBJECT_NOT_FOUND));
}

TEST_F(FastRegionTest, MappingOfAChainKeepsItsMemoryAndRefusalsLeaveNone) {
  auto other = Memory::Allocate(*client_, {.size = kNdkPageBytes});
  const std::vector<std::byte> foreign(10);
  EXPECT_TRUE(FailedWith(LogicalMapping::Build(*memory_, foreign).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  {
    const std::vector<MdlEntry> chain = {*memory_->Entry(memory_->bytes()), *other->Entry(other->bytes())};
    EXPECT_TRUE(FailedWith(LogicalMapping::BuildChain(*client_, chain, 0).status(), ErrorReason::LENGTH_ZERO));
    EXPECT_EQ(daemon_.state().LiveOthers(), 0u);
    const auto mapping = LogicalMapping::BuildChain(*client_, chain, 9 * kNdkPageBytes);
    ASSERT_TRUE(mapping.ok()) << mapping.status();
    other = absl::CancelledError();
    EXPECT_EQ(daemon_.state().LiveMemory(), 2u);
  }
  EXPECT_EQ(daemon_.state().LiveOthers(), 0u);
  EXPECT_EQ(daemon_.state().LiveMemory(), 1u);
}

TEST_F(FastRegionTest, WindowIsGivenBack) {
  {
    auto window = MemoryWindow::Create(*client_);
    ASSERT_TRUE(window.ok()) << window.status();
    EXPECT_TRUE(FailedWith(window->GetRemoteToken().status(), ErrorReason::WINDOW_NOT_BOUND));
    EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
    MemoryWindow taken = *std::move(window);
    EXPECT_EQ(window->id(), MemoryWindowId{});
    EXPECT_TRUE(FailedWith(window->Close(), ErrorReason::OBJECT_NOT_FOUND));
    const auto second = MemoryWindow::Create(*client_);
    EXPECT_TRUE(taken.Close().ok());
    EXPECT_TRUE(FailedWith(taken.GetRemoteToken().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
  }
  EXPECT_EQ(daemon_.state().LiveOthers(), 0u);
}

TEST_F(FastRegionTest, MovedFromClientRefusesToMakeAnything) {
  const Client taken = *std::move(client_);
  EXPECT_EQ(taken.GetPrivilegedToken()->value, kFakePrivilegedToken);
  EXPECT_TRUE(FailedWith(client_->GetPrivilegedToken().status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(FastRegion::Create(*client_, {.max_pages = 1}).status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(MemoryWindow::Create(*client_).status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(LogicalMapping::BuildChain(*client_, {}, 1).status(), ErrorReason::SESSION_REQUIRED));
}

}  // namespace
}  // namespace rnicd::inline client
