#include "daemon/core/region/memory_window.h"

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kBothRights = kOpFlagRemoteRead | kOpFlagRemoteWrite;

class MemoryWindowTest : public ::testing::Test, protected Connected {
 protected:
  MaybePending<> BeginClose(MemoryRegionId region, Awaited<absl::Status>& closed) {
    return owner.session->Begin()->regions().Close(region, {},
                                                   [&closed](const absl::Status& status) { closed.Set(status); });
  }
  NtStatus PeerWrites(RemoteToken token, uint64_t address = kRegionBase) {
    peer.MustPost(peer_pair, {Write({InlineSge("x")}, address, token, kOpFlagInline)});
    return peer.Statuses().at(0);
  }

  const MemoryRegionId region_ = owner.RegisteredRegion(2);
  const MemoryWindowId window_ = owner.Window();
};

TEST_F(MemoryWindowTest, HasNoTokenBeforeItsFirstBindIsPosted) {
  EXPECT_THAT(owner.session->Begin()->windows().GetRemoteToken(window_).status(),
              FailsAt(ErrorReason::WINDOW_NOT_BOUND, "mw_id"));
  owner.MustPost(pair, {Send(), Bind(region_, window_)});
  EXPECT_NE(owner.session->Begin()->windows().GetRemoteToken(window_)->value, 0u)
      << "posted is enough, it need not be executed";
}

TEST_F(MemoryWindowTest, ItsTokenReachesItsRangeAndNoMore) {
  const RemoteToken token = owner.MustPost(pair, {Bind(region_, window_, kPage, kBothRights, /*offset=*/kPage)});
  EXPECT_EQ(PeerWrites(token, kRegionBase + kPage), NtStatus::kSuccess);
  EXPECT_EQ(PeerWrites(token, kRegionBase + 2 * kPage - 1), NtStatus::kSuccess);
  EXPECT_EQ(PeerWrites(token, kRegionBase + kPage - 1), NtStatus::kAccessViolation);
}

TEST_F(MemoryWindowTest, WithoutRightsItsTokenReachesNothing) {
  EXPECT_EQ(PeerWrites(owner.MustPost(pair, {Bind(region_, window_)})), NtStatus::kAccessViolation);
}

TEST_F(MemoryWindowTest, ABoundWindowIsNotBoundAgain) {
  owner.MustPost(pair, {Bind(region_, window_), Bind(region_, window_)});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kInvalidDeviceRequest}));
}

TEST_F(MemoryWindowTest, ARegionWithABoundWindowIsNotDeregistered) {
  owner.MustPost(pair, {Bind(region_, window_)});
  EXPECT_THAT(owner.Deregister(region_), FailsWith(ErrorReason::REGION_HAS_WINDOWS));
  EXPECT_TRUE(owner.session->Begin()->regions().GetRemoteToken(region_).ok()) << "it stays registered";
  owner.MustPost(pair, {Invalidate(window_)});
  EXPECT_TRUE(owner.Deregister(region_).ok());
}

TEST_F(MemoryWindowTest, ARegionWithABoundWindowClosesWithTheWindow) {
  const RemoteToken token = owner.MustPost(pair, {Bind(region_, window_, kPage, kBothRights)});
  Awaited<absl::Status> closed;
  ASSERT_TRUE(BeginClose(region_, closed).pending());
  EXPECT_THAT(owner.session->Begin()->regions().GetRemoteToken(region_).status(),
              FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(PeerWrites(token), NtStatus::kSuccess) << "the window goes on until it is closed";
  EXPECT_EQ(closed.times(), 0);
  ASSERT_TRUE(owner.CloseWindow(window_).ok());
  EXPECT_EQ(closed.times(), 1);
  EXPECT_EQ(PeerWrites(token), NtStatus::kAccessViolation);
  EXPECT_EQ(world.observer.counts().deregistrations_failed, 0u);
  EXPECT_EQ(world.soft.live_regions(), 0u);
  EXPECT_EQ(owner.session->ledger().used(Resource::kPinnedBytes), 0u);
}

TEST_F(MemoryWindowTest, ABindThatWaitsKeepsItsRegionFromBeingClosed) {
  owner.MustPost(pair, {Send(), Bind(region_, window_)});
  Awaited<absl::Status> closed;
  ASSERT_TRUE(BeginClose(region_, closed).pending());
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(closed.times(), 1) << "the flushed request lets go of it";
  EXPECT_EQ(world.observer.counts().deregistrations_failed, 0u);
}

TEST_F(MemoryWindowTest, EveryBindOfAChainKeepsItsOwnRegion) {
  const MemoryRegionId second = owner.RegisteredRegion();
  const QueuePairId other = owner.Pair();
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(other, owner.Address(other)).ok());
  owner.MustPost(pair, {Send(), Bind(region_, window_), Invalidate(window_), Bind(second, window_)});
  Awaited<absl::Status> first_closed;
  Awaited<absl::Status> second_closed;
  ASSERT_TRUE(BeginClose(region_, first_closed).pending());
  ASSERT_TRUE(BeginClose(second, second_closed).pending());
  peer.MustPost(peer_pair, {Receive()});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>(4, NtStatus::kSuccess));
  EXPECT_EQ(first_closed.times(), 1) << "its binding is over";
  EXPECT_EQ(second_closed.times(), 0);
  owner.MustPost(other, {Invalidate(window_)});
  EXPECT_EQ(second_closed.times(), 1);
  EXPECT_EQ(world.observer.counts().deregistrations_failed, 0u);
}

TEST_F(MemoryWindowTest, BindingOverAndOverKeepsNothingBehind) {
  const MemoryRegionId second = owner.RegisteredRegion();
  owner.MustPost(pair, {Bind(region_, window_)});
  for (int round = 0; round < 50; ++round) {
    owner.MustPost(pair, {Invalidate(window_), Bind(second, window_), Invalidate(window_), Bind(region_, window_)});
    ASSERT_EQ(owner.Statuses().back(), NtStatus::kSuccess);
  }
  EXPECT_TRUE(owner.Close(second).ok());
  EXPECT_EQ(world.observer.counts().deregistrations_failed, 0u);
}

TEST_F(MemoryWindowTest, ABindThatFailsKeepsNoRegion) {
  const MemoryRegionId second = owner.RegisteredRegion();
  owner.MustPost(pair, {Bind(region_, window_), Bind(second, window_)});
  ASSERT_EQ(owner.Statuses().back(), NtStatus::kInvalidDeviceRequest);
  EXPECT_TRUE(owner.session->Begin()->regions().Close(second, {}, nullptr).succeeded());
}

TEST_F(MemoryWindowTest, ABindThatWaitsWhileItsWindowIsClosedFails) {
  owner.MustPost(pair, {Send(), Bind(region_, window_)});
  ASSERT_TRUE(owner.CloseWindow(window_).ok());
  EXPECT_THAT(owner.session->Begin()->windows().GetRemoteToken(window_).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "mw_id"));
  peer.MustPost(peer_pair, {Receive()});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kInvalidDeviceRequest}));
  EXPECT_TRUE(owner.Deregister(region_).ok());
}

TEST_F(MemoryWindowTest, APeerMayInvalidateABoundWindow) {
  const RemoteToken token = owner.MustPost(pair, {Bind(region_, window_, kPage, kBothRights), Receive()});
  peer.MustPost(peer_pair, {SendAndInvalidate(token)});
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
  EXPECT_TRUE(owner.Deregister(region_).ok());
}

TEST_F(MemoryWindowTest, IsCountedUntilItIsClosed) {
  EXPECT_EQ(owner.session->ledger().used(Resource::kWindows), 1u);
  ASSERT_TRUE(owner.CloseWindow(window_).ok());
  EXPECT_EQ(owner.session->ledger().used(Resource::kWindows), 0u);
  EXPECT_THAT(owner.CloseWindow(window_), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "mw_id"));
}

// The card refuses to deregister, and a Bind that is done but not reported yet, behind a slow read, still names the
// region: the registration is revoked all the same, before its pages count as free.
TEST(MemoryWindowOfASlowCard, ARegionTheCardDoesNotDeregisterIsOutOfReachWhenItsPagesAreGivenBack) {
  WorldOptions options;
  options.soft.read_delay = std::chrono::hours(1);
  Connected scene(options);
  QueueOwner& owner = scene.owner;
  const MemoryRegionId region = owner.Region(owner.domain);
  const auto registered = owner.Register(region, owner.Memory(1), kPage);
  ASSERT_TRUE(registered.ok());
  const MemoryWindowId window = owner.Window();
  owner.MustPost(scene.pair, {Read({}, 0, RemoteToken{}), Bind(region, window)});
  scene.world.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  Awaited<absl::Status> closed;
  ASSERT_TRUE(owner.session->Begin()
                  ->regions()
                  .Close(region, {}, [&](const absl::Status& status) { closed.Set(status); })
                  .pending());
  ASSERT_TRUE(owner.CloseWindow(window).ok());
  ASSERT_EQ(closed.times(), 1);
  EXPECT_EQ(scene.world.observer.counts().deregistrations_failed, 1u);
  EXPECT_EQ(owner.session->ledger().used(Resource::kPinnedBytes), 0u);
  scene.peer.MustPost(scene.peer_pair, {Write({InlineSge("x")}, kRegionBase, registered->remote_token, kOpFlagInline)});
  EXPECT_EQ(scene.peer.Statuses(), std::vector<NtStatus>{NtStatus::kAccessViolation});
}

TEST_F(MemoryWindowTest, HoldsItsDomainOpen) {
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  ASSERT_TRUE(owner.Close(region_).ok());
  Awaited<absl::Status> closed;
  ASSERT_TRUE(owner.session->Begin()
                  ->domains()
                  .Close(owner.domain, {}, [&](const absl::Status& status) { closed.Set(status); })
                  .pending());
  EXPECT_THAT(owner.session->Begin()->windows().Create(owner.domain).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "pd_id"));
  ASSERT_TRUE(owner.CloseWindow(window_).ok());
  EXPECT_EQ(closed.times(), 1);
}

TEST_F(MemoryWindowTest, ACardThatRefusesLeavesNothingBehind) {
  const std::string held = world.Held();
  world.plan.FailCreateMemoryWindow(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), 1);
  EXPECT_THAT(owner.session->Begin()->windows().Create(owner.domain).status(),
              FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_THAT(owner.session->Begin()->windows().Create({}).status(), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "pd_id"));
  EXPECT_EQ(world.Held(), held);
}

}  // namespace
}  // namespace rnicd::core
