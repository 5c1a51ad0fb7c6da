#include "provider/soft/soft_window.h"

#include <atomic>
#include <optional>
#include <thread>

#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

constexpr uint64_t kQueuePair = 70;
constexpr uint64_t kRegionBase = 0x5000;

class SoftWindowTest : public ::testing::Test {
 protected:
  SoftWindowTest() : region_(Register(kAllRights)), window_(Create()) {}

  std::shared_ptr<SoftMemoryRegion> Register(const AccessRights& rights) {
    std::span<std::byte> run(pages_);
    auto region = SoftMemoryRegion::Register(
        card_.nic(), kDomain, {.base = {kRegionBase}, .length = run.size(), .runs = {&run, 1}, .rights = rights});
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  std::shared_ptr<SoftWindow> Create() {
    const auto window = SoftWindow::Create(card_.nic(), kDomain);
    EXPECT_TRUE(window.ok()) << window.status();
    return *window;
  }
  // The second and third of four pages, unless the test says otherwise.
  BindWork Work(const AccessRights& rights = {.remote_read = true, .remote_write = true}) {
    return {.window = window_,
            .region = region_,
            .base = {kRegionBase + kPage},
            .length = 2 * kPage,
            .rights = rights,
            .backing = nullptr};
  }
  RemoteToken Bind(BindWork work) {
    const RemoteToken token = window_->IssueToken();
    EXPECT_TRUE(window_->Bind(work, token, kQueuePair));
    return token;
  }
  bool Reaches(RemoteToken token, uint64_t offset, uint64_t length, SoftAccess access = SoftAccess::kRemoteRead,
               const SoftAccessor& accessor = {.domain = kDomain, .queue_pair = kQueuePair}) {
    SoftPins pins;
    return pins.Add(card_.nic()->keys().Find(token), accessor, access, {kRegionBase + offset}, length);
  }
  bool IsOpen(RemoteToken token) { return Reaches(token, kPage, 1); }

  SoftCard card_;
  std::vector<std::byte> pages_ = std::vector<std::byte>(4 * kPage);
  std::shared_ptr<SoftMemoryRegion> region_;
  std::shared_ptr<SoftWindow> window_;
};

TEST_F(SoftWindowTest, ItsTokenLeadsNowhereUntilItIsBound) {
  EXPECT_NE(window_->remote_token().value, 0u);
  EXPECT_FALSE(IsOpen(window_->remote_token()));
  BindWork work = Work();
  const RemoteToken token = window_->IssueToken();
  EXPECT_FALSE(IsOpen(token)) << "posted is not executed";
  ASSERT_TRUE(window_->Bind(work, token, kQueuePair));
  EXPECT_TRUE(IsOpen(token));
  EXPECT_EQ(window_->remote_token(), token);
  EXPECT_NE(token, region_->remote_token());
}

TEST_F(SoftWindowTest, ItsBoundsAreItsOwn) {
  const RemoteToken token = Bind(Work());
  EXPECT_TRUE(Reaches(token, kPage, 2 * kPage));
  EXPECT_TRUE(Reaches(token, 3 * kPage - 1, 1));
  EXPECT_FALSE(Reaches(token, kPage - 1, 1));
  EXPECT_FALSE(Reaches(token, kPage - 1, 2));
  EXPECT_FALSE(Reaches(token, 3 * kPage - 1, 2));
  EXPECT_FALSE(Reaches(token, 3 * kPage, 1));
  EXPECT_FALSE(Reaches(token, kPage, UINT64_MAX));
}

TEST_F(SoftWindowTest, ItsBytesAreTheRegionsBytes) {
  const RemoteToken token = Bind(Work());
  SoftPins pins;
  ASSERT_TRUE(pins.Add(card_.nic()->keys().Find(token), {.domain = kDomain, .queue_pair = kQueuePair},
                       SoftAccess::kRemoteRead, {kRegionBase + kPage + 5}, 3));
  ASSERT_EQ(pins.pieces().size(), 1u);
  EXPECT_EQ(pins.pieces()[0].data(), &pages_[kPage + 5]);
  EXPECT_EQ(pins.pieces()[0].size(), 3u);
}

TEST_F(SoftWindowTest, ItsRightsAreItsOwnAndNotTheRegions) {
  const struct {
    AccessRights window;
    bool read;
    bool write;
  } kRows[] = {
      {{}, false, false},
      {{.remote_read = true}, true, false},
      {{.remote_write = true}, false, true},
      {{.remote_read = true, .remote_write = true}, true, true},
  };
  for (const AccessRights& region : {kAllRights, AccessRights{.local_write = true}}) {
    region_ = Register(region);
    for (const auto& row : kRows) {
      const RemoteToken token = Bind(Work(row.window));
      EXPECT_EQ(Reaches(token, kPage, 8, SoftAccess::kRemoteRead), row.read);
      EXPECT_EQ(Reaches(token, kPage, 8, SoftAccess::kRemoteWrite), row.write);
      EXPECT_TRUE(window_->Invalidate());
    }
  }
}

TEST_F(SoftWindowTest, ItWorksForPeersOnly) {
  const RemoteToken token = Bind(Work());
  for (const SoftAccess access :
       {SoftAccess::kLocalRead, SoftAccess::kLocalWrite, SoftAccess::kReadSink, SoftAccess::kThroughWindow}) {
    EXPECT_FALSE(Reaches(token, kPage, 8, access));
  }
}

TEST_F(SoftWindowTest, ItWorksThroughItsOwnQueuePairAndDomainOnly) {
  const RemoteToken token = Bind(Work());
  EXPECT_TRUE(IsOpen(token));
  EXPECT_FALSE(Reaches(token, kPage, 8, SoftAccess::kRemoteRead, {.domain = kDomain, .queue_pair = kQueuePair + 1}));
  EXPECT_FALSE(Reaches(token, kPage, 8, SoftAccess::kRemoteRead, {.domain = kDomain + 1, .queue_pair = kQueuePair}));
}

TEST_F(SoftWindowTest, InvalidatingClosesItAndLetsItBeBoundAgainUnderAnotherToken) {
  const RemoteToken first = Bind(Work());
  EXPECT_TRUE(window_->Invalidate());
  EXPECT_FALSE(IsOpen(first));
  EXPECT_FALSE(window_->Invalidate()) << "it is not bound any more";
  const RemoteToken second = Bind(Work());
  EXPECT_NE(first, second);
  EXPECT_TRUE(IsOpen(second));
  EXPECT_FALSE(IsOpen(first));
}

TEST_F(SoftWindowTest, EveryWindowOfARegionCounts) {
  const auto other = Create();
  Bind(Work());
  BindWork work = Work();
  ASSERT_TRUE(other->Bind(work, other->IssueToken(), kQueuePair));
  EXPECT_TRUE(window_->Invalidate());
  EXPECT_TRUE(FailedWith(region_->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  other->Retire();
  EXPECT_TRUE(region_->Deregister().ok());
}

TEST_F(SoftWindowTest, NothingGoesThroughItWhenItsRegionIsGone) {
  BindWork work = Work();
  const RemoteToken token = window_->IssueToken();
  ASSERT_TRUE(window_->Bind(work, token, kQueuePair));
  work.region.reset();
  region_.reset();
  EXPECT_FALSE(IsOpen(token));
  EXPECT_TRUE(window_->Invalidate());
}

TEST_F(SoftWindowTest, RetireClosesItForGood) {
  const RemoteToken token = Bind(Work());
  window_->Retire();
  EXPECT_FALSE(IsOpen(token));
  BindWork work = Work();
  EXPECT_FALSE(window_->Bind(work, window_->IssueToken(), kQueuePair));
  EXPECT_TRUE(region_->Deregister().ok());
}

TEST_F(SoftWindowTest, TheDestructorGivesBackKeysAndRegion) {
  const uint64_t before = card_.nic()->keys().size();
  const RemoteToken token = Bind(Work());
  window_.reset();
  EXPECT_EQ(card_.nic()->keys().size(), before - 1);
  EXPECT_FALSE(IsOpen(token));
  EXPECT_TRUE(region_->Deregister().ok());
}

TEST_F(SoftWindowTest, ThePeerOfItsQueuePairMayInvalidateItByItsTokenAndNoOtherOrStaleOneCan) {
  constexpr SoftAccessor kOwn{.domain = kDomain, .queue_pair = kQueuePair};
  const RemoteToken first = Bind(Work());
  const std::shared_ptr<SoftTarget> stale = card_.nic()->keys().Find(first);
  EXPECT_FALSE(stale->InvalidateByToken({.domain = kDomain + 1, .queue_pair = kQueuePair}));
  EXPECT_FALSE(stale->InvalidateByToken({.domain = kDomain, .queue_pair = kQueuePair + 1}));
  EXPECT_TRUE(IsOpen(first));
  EXPECT_TRUE(stale->InvalidateByToken(kOwn));
  const RemoteToken token = Bind(Work());
  EXPECT_FALSE(stale->InvalidateByToken(kOwn));
  EXPECT_TRUE(IsOpen(token));
}

TEST_F(SoftWindowTest, InvalidatingWaitsForARunningCopy) {
  const RemoteToken token = Bind(Work());
  std::optional<SoftPins> pins(std::in_place);
  ASSERT_TRUE(pins->Add(card_.nic()->keys().Find(token), {.domain = kDomain, .queue_pair = kQueuePair},
                        SoftAccess::kRemoteWrite, {kRegionBase + kPage}, kPage));
  std::atomic<bool> copied{false};
  std::thread invalidator([&] {
    EXPECT_TRUE(window_->Invalidate());
    EXPECT_TRUE(copied) << "the window closed on a transfer";
  });
  while (card_.nic()->keys().Find(token) != nullptr) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(FailedWith(region_->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  copied = true;
  pins.reset();
  invalidator.join();
  EXPECT_TRUE(region_->Deregister().ok());
}

// In either order of the two calls, a window is never left bound to a region that is not registered.
TEST_F(SoftWindowTest, BindingAndDeregisteringTakeTurns) {
  for (int round = 0; round < 500; ++round) {
    region_ = Register(kAllRights);
    window_ = Create();
    std::atomic<bool> bound{false};
    std::thread binder([&] {
      BindWork work = Work();
      bound = window_->Bind(work, window_->IssueToken(), kQueuePair);
    });
    const bool deregistered = region_->Deregister().ok();
    binder.join();
    EXPECT_NE(deregistered, bound);
  }
}

}  // namespace
}  // namespace rnicd::provider
