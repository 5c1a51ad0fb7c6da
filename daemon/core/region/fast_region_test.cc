// Regions of the fast kind: initialized once, registered by work requests, and the charges meanwhile.

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

class FastRegionTest : public ::testing::Test, protected Connected {
 protected:
  explicit FastRegionTest(const WorldOptions& options = {}) : Connected(options) {}

  RegionView View(MemoryRegionId region) {
    for (const auto& [id, view] : owner.session->ViewRegions()) {
      if (id == region) {
        return view;
      }
    }
    ADD_FAILURE() << "no such region";
    return {};
  }
  uint64_t Used(Resource resource) { return owner.session->ledger().used(resource); }
};

TEST_F(FastRegionTest, HasNoTokensUntilItIsReady) {
  const MemoryRegionId region = owner.NewFastRegion();
  EXPECT_THAT(owner.session->Begin()->regions().GetLocalToken(region).status(),
              FailsAt(ErrorReason::REGION_NOT_INITIALIZED, "mr_id"));
  EXPECT_THAT(owner.session->Begin()->regions().GetRemoteToken(region).status(),
              FailsAt(ErrorReason::REGION_NOT_INITIALIZED, "mr_id"));
  EXPECT_EQ(View(region).state, "created");
  ASSERT_TRUE(owner.Initialize(region, 4, false).ok());
  EXPECT_NE(owner.session->Begin()->regions().GetLocalToken(region)->value, 0u);
  EXPECT_NE(owner.session->Begin()->regions().GetRemoteToken(region)->value, 0u);
  EXPECT_EQ(View(region).state, "initialized");
  EXPECT_EQ(View(region).length, 0u);
}

TEST_F(FastRegionTest, ChargesThePagesItIsReadyForAndGivesThemBackWhenItIsClosed) {
  const MemoryRegionId region = owner.FastRegion(16);
  EXPECT_EQ(Used(Resource::kFastRegisterPages), 16u);
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  ASSERT_TRUE(owner.Close(region).ok());
  EXPECT_EQ(Used(Resource::kFastRegisterPages), 0u);
  EXPECT_EQ(world.soft.live_regions(), 0u);
}

TEST_F(FastRegionTest, IsMadeReadyOnce) {
  const MemoryRegionId region = owner.FastRegion(4);
  EXPECT_THAT(owner.Initialize(region, 8, true), FailsAt(ErrorReason::REGION_ALREADY_INITIALIZED, "mr_id"));
  EXPECT_EQ(Used(Resource::kFastRegisterPages), 4u);
}

TEST_F(FastRegionTest, WantsAtLeastOnePage) {
  const MemoryRegionId region = owner.NewFastRegion();
  EXPECT_THAT(owner.Initialize(region, 0, true), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "adapter_page_count"));
  EXPECT_EQ(View(region).state, "created");
}

TEST_F(FastRegionTest, ANormalRegionIsNotMadeReady) {
  const MemoryRegionId region = owner.Region(owner.domain);
  EXPECT_THAT(owner.Initialize(region, 4, true), FailsAt(ErrorReason::REGION_WRONG_KIND, "mr_id"));
  EXPECT_THAT(owner.Initialize({}, 4, true), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "mr_id"));
}

TEST_F(FastRegionTest, IsNotRegisteredOrDeregisteredLikeANormalOne) {
  const MemoryRegionId region = owner.FastRegion();
  EXPECT_THAT(owner.Register(region, owner.Memory(1), kPage).status(), FailsWith(ErrorReason::REGION_WRONG_KIND));
  EXPECT_THAT(owner.Deregister(region), FailsWith(ErrorReason::REGION_WRONG_KIND));
}

TEST_F(FastRegionTest, WhatTheCardRefusesLeavesTheRegionAsItWas) {
  const MemoryRegionId region = owner.NewFastRegion();
  const std::string held = world.Held();
  for (const ErrorReason reason : {ErrorReason::DEVICE_OUT_OF_RESOURCES, ErrorReason::DEVICE_FAILED}) {
    world.plan.FailCreateFastRegion(MakeError(reason), 1);
    EXPECT_THAT(owner.Initialize(region, 4, true), FailsWith(reason));
    EXPECT_EQ(world.Held(), held);
    EXPECT_EQ(View(region).state, "created");
  }
  EXPECT_TRUE(owner.Initialize(region, 4, true).ok());
}

TEST_F(FastRegionTest, ARegistrationShowsUntilItIsInvalidated) {
  const MemoryRegionId region = owner.FastRegion();
  const std::vector<uint64_t> pages = PagesOf(owner.Lam(owner.Memory(2), 2));
  const LocalToken local = *owner.session->Begin()->regions().GetLocalToken(region);
  const RemoteToken token = owner.MustPost(pair, {FastRegister(region, pages, kRemoteRights)});
  EXPECT_EQ(View(region).state, "registered");
  EXPECT_EQ(View(region).base.value, kRegionBase);
  EXPECT_EQ(View(region).length, 2 * kPage);
  EXPECT_EQ(View(region).pages, 2u);
  EXPECT_EQ(View(region).rights, AccessRightsFromOpFlags(kRemoteRights));
  EXPECT_EQ(*owner.session->Begin()->regions().GetRemoteToken(region), token);
  owner.MustPost(pair, {Invalidate(region)});
  EXPECT_EQ(View(region).state, "initialized");
  EXPECT_EQ(View(region).length, 0u);
  EXPECT_EQ(*owner.session->Begin()->regions().GetLocalToken(region), local) << "the local token is the same for life";
}

TEST_F(FastRegionTest, ARegistrationIsReachableBetweenItsExecutionAndItsInvalidation) {
  const MemoryRegionId region = owner.FastRegion();
  const std::vector<uint64_t> pages = PagesOf(owner.Lam(owner.Memory(1), 1));
  const RemoteToken token = owner.MustPost(pair, {FastRegister(region, pages, kRemoteRights)});
  peer.MustPost(peer_pair, {Write({InlineSge("x")}, kRegionBase, token, kOpFlagInline)});
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
  owner.MustPost(pair, {Invalidate(region)});
  peer.MustPost(peer_pair, {Write({InlineSge("x")}, kRegionBase, token, kOpFlagInline)});
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kAccessViolation});
}

TEST_F(FastRegionTest, ReleasedPagesStayReachableAndChargedUntilTheInvalidation) {
  const MemoryRegionId region = owner.FastRegion();
  const MemoryObjectId memory = owner.Memory(2);
  const BuiltLam lam = owner.Lam(memory, 2);
  const RemoteToken token = owner.MustPost(pair, {FastRegister(region, PagesOf(lam), kRemoteRights)});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(Used(Resource::kLogicalMappings), 0u);
  EXPECT_EQ(Used(Resource::kPinnedBytes), 2 * kPage);
  EXPECT_THAT((*owner.session->Begin()->memory().Find(memory))->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  peer.MustPost(peer_pair, {Write({InlineSge("x")}, kRegionBase + kPage, token, kOpFlagInline)});
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
  owner.MustPost(pair, {Invalidate(region)});
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  EXPECT_TRUE((*owner.session->Begin()->memory().Find(memory))->Release().ok());
}

TEST_F(FastRegionTest, ItsPageListIsCountedFromThePostToTheInvalidation) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(3), 3);
  owner.MustPost(pair, {Send(), FastRegister(region, PagesOf(lam))});
  EXPECT_EQ(Used(Resource::kPostedPages), 3u);
  peer.MustPost(peer_pair, {Receive()});
  EXPECT_EQ(View(region).state, "registered");
  EXPECT_EQ(Used(Resource::kPostedPages), 3u);
  owner.MustPost(pair, {Invalidate(region)});
  EXPECT_EQ(Used(Resource::kPostedPages), 0u);
}

TEST_F(FastRegionTest, PagesOfAMappingThatLivesStayChargedAfterTheInvalidation) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(2), 2);
  owner.MustPost(pair, {FastRegister(region, PagesOf(lam)), Invalidate(region)});
  EXPECT_EQ(Used(Resource::kPinnedBytes), 2 * kPage);
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
}

TEST_F(FastRegionTest, TheLastOfSeveralRegistrationsGivesReleasedPagesBack) {
  const MemoryRegionId first = owner.FastRegion();
  const MemoryRegionId second = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  owner.MustPost(pair, {FastRegister(first, PagesOf(lam)), FastRegister(second, PagesOf(lam))});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  owner.MustPost(pair, {Invalidate(first)});
  EXPECT_EQ(Used(Resource::kPinnedBytes), kPage);
  ASSERT_TRUE(owner.Close(second).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
}

TEST_F(FastRegionTest, AFlushedRegistrationGivesReleasedPagesBack) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  owner.MustPost(pair, {Send(), FastRegister(region, PagesOf(lam))});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), kPage) << "the request waits behind a send that waits for a receive";
  EXPECT_EQ(View(region).state, "initialized");
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
}

TEST_F(FastRegionTest, ARegistrationThatFailsKeepsNothing) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam first = owner.Lam(owner.Memory(1), 1);
  const BuiltLam second = owner.Lam(owner.Memory(2), 2);
  owner.MustPost(pair, {FastRegister(region, PagesOf(first)), FastRegister(region, PagesOf(second))});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kInvalidDeviceRequest}));
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(second.id).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), kPage) << "only what is registered and mapped is left";
}

TEST_F(FastRegionTest, ClosingEndsTheRegistration) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  const RemoteToken token = owner.MustPost(pair, {FastRegister(region, PagesOf(lam), kRemoteRights)});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  ASSERT_TRUE(owner.Close(region).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  peer.MustPost(peer_pair, {Write({InlineSge("x")}, kRegionBase, token, kOpFlagInline)});
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kAccessViolation});
}

TEST_F(FastRegionTest, ARequestThatWaitsWhileItsRegionIsClosedFails) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  owner.MustPost(pair, {Send(), FastRegister(region, PagesOf(lam))});
  ASSERT_TRUE(owner.Close(region).ok());
  peer.MustPost(peer_pair, {Receive()});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kInvalidDeviceRequest}));
  EXPECT_EQ(world.soft.live_regions(), 0u);
}

TEST_F(FastRegionTest, APeerThatInvalidatesGivesReleasedPagesBack) {
  const MemoryRegionId region = owner.FastRegion();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  const RemoteToken token = owner.MustPost(pair, {FastRegister(region, PagesOf(lam), kRemoteRights), Receive()});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  peer.MustPost(peer_pair, {SendAndInvalidate(token)});
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  const auto results = owner.Results();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(results[1].invalidated_token, token);
}

class SlowFastRegionTest : public FastRegionTest {
 protected:
  static WorldOptions Options() {
    WorldOptions options = SlowFromTwoPages();
    options.workers = 1;
    options.soft.max_fast_register_pages = 16;
    options.limits.session[Resource::kPendingRequests] = 1;
    options.limits.session[Resource::kFastRegisterPages] = 20;
    return options;
  }
  SlowFastRegionTest() : FastRegionTest(Options()) {}

  MaybePending<> Begin(MemoryRegionId region, uint32_t pages, uint64_t context) {
    return owner.session->Begin()->regions().Initialize({.region = region, .max_pages = pages, .remote_access = true},
                                                        {.to_events = true, .request_context = context}, nullptr);
  }
  RequestCompleted NextCompletion() {
    std::optional<Event> event;
    EXPECT_TRUE(Eventually([&] { return (event = owner.session->events().Pop()).has_value(); }));
    return event.has_value() ? std::get<RequestCompleted>(event->body) : RequestCompleted{};
  }
};

TEST_F(SlowFastRegionTest, ManyPagesAreMadeReadyOnAWorkerAndReportedOnce) {
  const MemoryRegionId region = owner.NewFastRegion();
  BusyWorkers busy(*world.workers, 1);
  EXPECT_TRUE(Begin(region, 2, 42).pending());
  EXPECT_EQ(View(region).state, "initializing");
  EXPECT_EQ(Used(Resource::kFastRegisterPages), 2u);
  EXPECT_EQ(Used(Resource::kPendingRequests), 1u);
  EXPECT_TRUE(Begin(owner.NewFastRegion(), 1, 43).succeeded()) << "one page is not slow";
  EXPECT_THAT(Begin(region, 1, 43).status(), FailsAt(ErrorReason::REGION_BUSY, "mr_id"));
  EXPECT_THAT(owner.session->Begin()->regions().GetLocalToken(region).status(),
              FailsWith(ErrorReason::REGION_NOT_INITIALIZED));
  EXPECT_TRUE(owner.HasNoEvent());
  busy.Release();
  const RequestCompleted completed = NextCompletion();
  EXPECT_EQ(completed.kind, RequestKind::kInitializeFastRegisterMr);
  EXPECT_EQ(completed.request_context, 42u);
  EXPECT_EQ(completed.object_id, region.value);
  EXPECT_TRUE(completed.status.ok());
  EXPECT_FALSE(completed.registration.has_value());
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  EXPECT_TRUE(owner.session->Begin()->regions().GetLocalToken(region).ok());
  EXPECT_TRUE(owner.HasNoEvent());
}

TEST_F(SlowFastRegionTest, AFastRegisterOfARegionThatIsNotReadyYetIsRefused) {
  const MemoryRegionId region = owner.NewFastRegion();
  const std::vector<uint64_t> pages = PagesOf(owner.Lam(owner.Memory(1), 1));
  const BusyWorkers busy(*world.workers, 1);
  ASSERT_TRUE(Begin(region, 2, 1).pending());
  EXPECT_THAT(owner.Post(pair, {FastRegister(region, pages)}).failure,
              FailsAt(ErrorReason::REGION_NOT_INITIALIZED, "requests[0].fast_register.mr_id"));
}

TEST_F(SlowFastRegionTest, TooManyPagesForTheCardAreRefusedInTheCompletion) {
  const MemoryRegionId region = owner.NewFastRegion();
  ASSERT_TRUE(Begin(region, 17, 1).pending());
  EXPECT_THAT(NextCompletion().status, FailsAt(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count"));
  EXPECT_EQ(Used(Resource::kFastRegisterPages), 0u);
  EXPECT_EQ(View(region).state, "created");
  EXPECT_TRUE(owner.Initialize(region, 16, true).ok());
}

TEST_F(SlowFastRegionTest, PagesAboveTheOwnersLimitAreRefusedAtOnceAndTheRequestIsNotCounted) {
  owner.FastRegion(16);
  const MemoryRegionId region = owner.NewFastRegion();
  const absl::Status refused = Begin(region, 5, 1).status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_FAST_REGISTER_PAGES));
  EXPECT_EQ(ErrorInfoOf(refused).used, 16u);
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  EXPECT_EQ(View(region).state, "created");
}

}  // namespace
}  // namespace rnicd::core
