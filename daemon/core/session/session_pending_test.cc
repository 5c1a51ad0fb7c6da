// Requests whose call returns STATUS_PENDING: each has one outcome, in one place.

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

class SessionPendingTest : public ::testing::Test {
 protected:
  static WorldOptions Options() {
    WorldOptions options = SlowFromTwoPages();
    options.workers = 1;
    options.limits.session[Resource::kPendingRequests] = 2;
    return options;
  }

  SessionPendingTest() : domain_(owner_.Domain()), region_(owner_.Region(domain_)), memory_(owner_.Memory(4)) {}

  // A registration of two pages that waits behind the busy worker.
  void BeginPendingRegister(MemoryRegionId region, uint64_t context) {
    const auto begun = owner_.BeginRegister(region, memory_, 2 * kPage, ToEvents(context), nullptr);
    ASSERT_TRUE(begun.ok()) << begun.status();
    EXPECT_TRUE(begun.pending());
  }
  // The next event, which must be a completion.
  RequestCompleted NextCompletion() {
    std::optional<Event> event;
    EXPECT_TRUE(Eventually([&] { return (event = session().events().Pop()).has_value(); }));
    const auto* completed = event.has_value() ? std::get_if<RequestCompleted>(&event->body) : nullptr;
    EXPECT_NE(completed, nullptr);
    return completed != nullptr ? *completed : RequestCompleted{};
  }
  Session& session() { return *owner_.session; }

  World world_{Options()};
  Owner owner_{world_};
  ProtectionDomainId domain_;
  MemoryRegionId region_;
  MemoryObjectId memory_;
};

TEST_F(SessionPendingTest, ASmallRegistrationIsAnsweredInlineEvenWhenItMayPend) {
  const BusyWorkers busy(*world_.workers, 1);
  const auto begun = owner_.BeginRegister(region_, memory_, 2 * kPage - 1, ToEvents(1), nullptr);
  ASSERT_TRUE(begun.ok());
  EXPECT_FALSE(begun.pending());
  EXPECT_TRUE(session().Begin()->regions().Deregister(region_, ToEvents(2), nullptr).succeeded());
  EXPECT_FALSE(session().events().Pop().has_value());
}

TEST_F(SessionPendingTest, ALargeRegistrationPendsAndIsReportedOnceOnTheEvents) {
  BusyWorkers busy(*world_.workers, 1);
  BeginPendingRegister(region_, 42);
  EXPECT_FALSE(session().events().Pop().has_value());
  busy.Release();
  const RequestCompleted completed = NextCompletion();
  EXPECT_EQ(completed.kind, RequestKind::kRegisterMr);
  EXPECT_EQ(completed.request_context, 42u);
  EXPECT_EQ(completed.object_id, region_.value);
  EXPECT_TRUE(completed.status.ok());
  ASSERT_TRUE(completed.registration.has_value());
  EXPECT_EQ(completed.registration->local_token, *session().Begin()->regions().GetLocalToken(region_));
  EXPECT_FALSE(session().events().Pop().has_value());
}

TEST_F(SessionPendingTest, ALateFailureIsReportedToTheObserver) {
  world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_MEMLOCK_LIMIT), 1);
  BeginPendingRegister(region_, 1);
  EXPECT_THAT(NextCompletion().status, FailsWith(ErrorReason::DEVICE_MEMLOCK_LIMIT));
  const std::vector<RecordedDecision> decisions = world_.observer.counts().decisions;
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions.front().what, "late.register");
  EXPECT_EQ(decisions.front().object, "mr_id=" + std::to_string(region_.value));
  EXPECT_EQ(decisions.front().refused, ErrorReason::DEVICE_MEMLOCK_LIMIT);
  EXPECT_EQ(decisions.front().session, session().id());
  EXPECT_THAT(session().tenant().tally()->refusals(),
              ::testing::ElementsAre(::testing::Pair(ErrorReason::DEVICE_MEMLOCK_LIMIT, 1u)));
}

TEST_F(SessionPendingTest, AFailureThatTheCallReturnsIsReportedByTheGateAlone) {
  world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_MEMLOCK_LIMIT), 1);
  EXPECT_FALSE(owner_.Register(region_, memory_, 2 * kPage).ok());
  EXPECT_TRUE(world_.observer.counts().decisions.empty());
}

TEST_F(SessionPendingTest, WithoutPendingTheCallItselfWaitsAndNoEventComes) {
  const auto registration = owner_.Register(region_, memory_, 2 * kPage);
  ASSERT_TRUE(registration.ok());
  EXPECT_TRUE(owner_.Deregister(region_).ok());
  EXPECT_FALSE(session().events().Pop().has_value());
}

TEST_F(SessionPendingTest, WhileARegistrationPendsTheRegionIsBusy) {
  const BusyWorkers busy(*world_.workers, 1);
  BeginPendingRegister(region_, 1);
  EXPECT_THAT(owner_.Register(region_, memory_, kPage).status(), FailsWith(ErrorReason::REGION_BUSY));
  EXPECT_THAT(owner_.Deregister(region_), FailsWith(ErrorReason::REGION_BUSY));
  EXPECT_THAT(session().Begin()->regions().GetRemoteToken(region_).status(),
              FailsWith(ErrorReason::REGION_NOT_REGISTERED));
}

TEST_F(SessionPendingTest, AFailureIsReportedWithItsReasonAndNoRegistration) {
  world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), 1);
  BeginPendingRegister(region_, 5);
  const RequestCompleted completed = NextCompletion();
  EXPECT_THAT(completed.status, FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_FALSE(completed.registration.has_value());
}

TEST_F(SessionPendingTest, ADeregistrationThatFailsLeavesTheRegionRegistered) {
  ASSERT_TRUE(owner_.Register(region_, memory_, 2 * kPage).ok());
  world_.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  ASSERT_TRUE(session().Begin()->regions().Deregister(region_, ToEvents(6), nullptr).pending());
  const RequestCompleted completed = NextCompletion();
  EXPECT_EQ(completed.kind, RequestKind::kDeregisterMr);
  EXPECT_THAT(completed.status, FailsWith(ErrorReason::DEVICE_FAILED));
  EXPECT_TRUE(session().Begin()->regions().GetLocalToken(region_).ok());
}

TEST_F(SessionPendingTest, ACloseWaitsForThePendingRequestAndIsReportedAfterIt) {
  BusyWorkers busy(*world_.workers, 1);
  BeginPendingRegister(region_, 1);
  ASSERT_TRUE(session().Begin()->regions().Close(region_, ToEvents(2), nullptr).pending());
  EXPECT_THAT(session().Begin()->regions().GetLocalToken(region_).status(), FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_THAT(session().Begin()->regions().Close(region_, ToEvents(3), nullptr).status(),
              FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  ASSERT_TRUE(session().Begin()->domains().Close(domain_, ToEvents(4), nullptr).pending());
  busy.Release();
  const RequestCompleted first = NextCompletion();
  EXPECT_EQ(first.request_context, 1u);
  EXPECT_TRUE(first.status.ok()) << "the registration came first and succeeded";
  const RequestCompleted second = NextCompletion();
  const RequestCompleted third = NextCompletion();
  EXPECT_THAT((std::vector<uint64_t>{second.request_context, third.request_context}),
              ::testing::UnorderedElementsAre(2, 4));
  EXPECT_EQ(world_.soft.live_regions(), 0u);
  EXPECT_FALSE(session().events().Pop().has_value());
}

TEST_F(SessionPendingTest, ACloseThatWaitsCanBeAwaitedByItsCall) {
  BusyWorkers busy(*world_.workers, 1);
  BeginPendingRegister(region_, 1);
  Awaited<absl::Status> closed;
  ASSERT_TRUE(session()
                  .Begin()
                  ->regions()
                  .Close(region_, {}, [&](const absl::Status& status) { closed.Set(status); })
                  .pending());
  EXPECT_EQ(closed.times(), 0);
  busy.Release();
  EXPECT_TRUE(closed.Get().value_or(absl::UnknownError("never")).ok());
}

// The bound of the event queue: an owner that fetches nothing cannot start more requests.
TEST_F(SessionPendingTest, ACompletionCountsAsPendingUntilItIsFetched) {
  const MemoryRegionId second = owner_.Region(domain_);
  BeginPendingRegister(region_, 1);
  BeginPendingRegister(second, 2);
  ASSERT_TRUE(Eventually([&] { return world_.soft.live_regions() == 2; }));
  const absl::Status refused = session().Begin()->regions().Deregister(region_, ToEvents(3), nullptr).status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_PENDING_REQUESTS));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 2u);
  EXPECT_EQ(ErrorInfoOf(refused).used, 2u);
  EXPECT_TRUE(session().Begin()->regions().GetLocalToken(region_).ok()) << "a refused request changes nothing";
  NextCompletion();
  EXPECT_TRUE(session().Begin()->regions().Deregister(region_, ToEvents(3), nullptr).pending());
}

TEST_F(SessionPendingTest, AClosedRegionCountsUntilItsCompletionIsFetched) {
  BusyWorkers busy(*world_.workers, 1);
  BeginPendingRegister(region_, 1);
  ASSERT_TRUE(session().Begin()->regions().Close(region_, ToEvents(2), nullptr).pending());
  busy.Release();
  NextCompletion();
  ASSERT_TRUE(Eventually([&] { return world_.soft.live_regions() == 0; }));
  EXPECT_EQ(session().ledger().used(Resource::kRegions), 1u);
  NextCompletion();
  EXPECT_EQ(session().ledger().used(Resource::kRegions), 0u) << "fetching refunds it, even while it is shared";
}

// A client sends its next request as soon as it has the response: its finished request must not count against it.
TEST_F(SessionPendingTest, AFailedRegistrationHasGivenEverythingBackWhenItAnswers) {
  world_.plan.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  Awaited<bool> checked;
  const auto begun =
      owner_.BeginRegister(region_, memory_, 2 * kPage, {}, [&](const absl::StatusOr<Registration>& outcome) {
        EXPECT_THAT(outcome.status(), FailsWith(ErrorReason::DEVICE_FAILED));
        EXPECT_EQ(session().ledger().used(Resource::kPinnedBytes), 0u);
        EXPECT_EQ(session().ledger().used(Resource::kPendingRequests), 0u);
        EXPECT_TRUE((*session().Begin()->memory().Find(memory_))->Release().ok());
        checked.Set(true);
      });
  ASSERT_TRUE(begun.ok());
  EXPECT_TRUE(checked.Get().has_value());
}

TEST_F(SessionPendingTest, AnAnsweredRequestNoLongerCountsAsPending) {
  Awaited<uint64_t> at_register;
  ASSERT_TRUE(owner_
                  .BeginRegister(region_, memory_, 2 * kPage, {},
                                 [&](const absl::StatusOr<Registration>&) {
                                   at_register.Set(session().ledger().used(Resource::kPendingRequests));
                                 })
                  .ok());
  EXPECT_EQ(at_register.Get(), 0u);
  Awaited<uint64_t> at_deregister;
  ASSERT_TRUE(session()
                  .Begin()
                  ->regions()
                  .Deregister(region_, {},
                              [&](const absl::Status&) {
                                at_deregister.Set(session().ledger().used(Resource::kPendingRequests));
                              })
                  .ok());
  EXPECT_EQ(at_deregister.Get(), 0u);
}

// One worker, and a large request before a small one.
TEST(Populating, ALargeAllocationDelaysAnotherOwnersSmallOneByOnePiece) {
  WorldOptions options;
  options.workers = 1;
  World world(options);
  Owner large(world, 1);
  Owner small(world, 2, 1001);
  Mutex mutex;
  std::vector<std::string> finished;
  Awaited<int> last;
  const auto note = [&](const std::string& name) {
    return [&, name](const absl::StatusOr<MemoryTicket>& got) {
      EXPECT_TRUE(got.ok()) << got.status();
      MutexLock lock(mutex);
      finished.push_back(name);
      if (finished.size() == 3) {
        last.Set(0);
      }
    };
  };
  BusyWorkers busy(*world.workers, 1);
  ASSERT_TRUE(large.session->Begin()->memory().Allocate({.size = uint64_t{8} << 20}, note("large")).ok());
  ASSERT_TRUE(large.session->Begin()->memory().Allocate({.size = kPage}, note("its own little")).ok());
  ASSERT_TRUE(small.session->Begin()->memory().Allocate({.size = kPage}, note("another's little")).ok());
  busy.Release();
  ASSERT_TRUE(last.Get().has_value());
  MutexLock lock(mutex);
  EXPECT_EQ(finished, (std::vector<std::string>{"another's little", "its own little", "large"}));
}

TEST_F(SessionPendingTest, LargeMemoryIsReleasedOnAWorker) {
  BusyWorkers busy(*world_.workers, 1);
  Awaited<absl::Status> released;
  ASSERT_TRUE(session()
                  .Begin()
                  ->memory()
                  .Release(memory_, [&](const absl::Status& status) { released.Set(status); })
                  .pending());
  EXPECT_EQ(world_.os.live_mappings(), 1u);
  busy.Release();
  EXPECT_TRUE(released.Get().value_or(absl::UnknownError("never")).ok());
  EXPECT_EQ(world_.os.live_mappings(), 0u);
  EXPECT_THAT(session().Begin()->memory().Find(memory_).status(), FailsWith(ErrorReason::OBJECT_NOT_FOUND));
}

}  // namespace
}  // namespace rnicd::core
