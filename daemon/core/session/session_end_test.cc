// How a session ends: nothing it owned stays, whatever was in progress.

#include "daemon/core/memory/memory_object_fixture_test.h"
#include "daemon/core/queue/queue_fixture_test.h"
#include "daemon/core/session/fd_exchange.h"

namespace rnicd::core {
namespace {

// Typical objects of a dying client: one registered region of two pages, one that is idle, memory of four pages.
void Furnish(Owner& owner) {
  const ProtectionDomainId domain = owner.Domain();
  owner.Region(domain);
  const auto registration = owner.Register(owner.Region(domain), owner.Memory(4), 2 * kPage);
  EXPECT_TRUE(registration.ok()) << registration.status();
}

TEST(SessionEnd, TakesEverythingBackAndSaysHowMuch) {
  World world;
  Owner owner(world);
  Furnish(owner);
  const Reclaimed reclaimed = world.End(owner.session, EndCause::kProcessExited);
  EXPECT_EQ(reclaimed.regions, 2u);
  EXPECT_EQ(reclaimed.pinned_bytes, 2 * kPage);
  EXPECT_EQ(reclaimed.memory_bytes, 4 * kPage);
  EXPECT_EQ(reclaimed.failures, 0u);
  EXPECT_EQ(world.Held(), "");
  EXPECT_EQ(world.soft.live_regions(), 0u);
  EXPECT_EQ(world.os.live_mappings(), 0u);
  const auto counts = world.observer.counts();
  EXPECT_EQ(counts.ended, 1u);
  EXPECT_EQ(counts.cause, EndCause::kProcessExited);
  EXPECT_EQ(counts.revoked.at("process_exited"), 1u);
}

TEST(SessionEnd, TakesEverythingBackEvenWhenTheCardRefuses) {
  World world;
  Owner owner(world);
  Furnish(owner);
  world.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 100);
  world.End(owner.session);
  EXPECT_EQ(world.Held(), "");
  EXPECT_EQ(world.soft.live_regions(), 0u);
  EXPECT_EQ(world.observer.counts().deregistrations_failed, 1u);
}

TEST(SessionEnd, AnEndingSessionTakesNoNewRequests) {
  World world;
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  const MemoryObjectId memory = owner.Memory(1);
  world.End(owner.session);
  EXPECT_TRUE(owner.session->ending());
  EXPECT_THAT(owner.session->Begin().status(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_THAT(owner.TryAllocate({.size = kPage}).status(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_THAT(owner.Register(region, memory, kPage).status(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_THAT(owner.Deregister(region), FailsWith(ErrorReason::SESSION_ENDING));
}

TEST(SessionEnd, WaitsForARunningRequest) {
  World world;
  Owner owner(world);
  Furnish(owner);
  Awaited<Reclaimed> ended;
  {
    const auto guard = owner.session->Begin();
    ASSERT_TRUE(guard.ok());
    world.registry.End(owner.session, EndCause::kClosed, [&](const Reclaimed& reclaimed) { ended.Set(reclaimed); });
    EXPECT_TRUE(owner.session->ending());
    Awaited<bool> reaped;
    world.reapers->PostFor(owner.session->tenant().number(), [&] { reaped.Set(true); });
    EXPECT_TRUE(reaped.Get().has_value()) << "after all that the end has begun";
    EXPECT_EQ(ended.times(), 0);
    EXPECT_EQ(world.soft.live_regions(), 1u) << "nothing is torn down under a request";
  }
  EXPECT_TRUE(ended.Get().has_value());
  EXPECT_EQ(world.Held(), "");
}

WorldOptions WithOneWorker() {
  WorldOptions options = SlowFromTwoPages();
  options.workers = 1;
  return options;
}

// Requests of every kind that wait for a worker, and their outcomes.
class QueuedRequests {
 public:
  // Before the worker is kept busy.
  explicit QueuedRequests(Owner& owner)
      : owner_(owner),
        domain_(owner.Domain()),
        memory_(owner.Memory(2)),
        released_(owner.Memory(2)),
        unsealed_(*owner.session->Begin()->memory().Find(owner.session->Begin()->memory().Import(2 * kPage)->memory)),
        registered_(owner.Region(domain_)),
        closed_(owner.Region(domain_)) {
    EXPECT_TRUE(owner.Register(registered_, memory_, 2 * kPage).ok());
    EXPECT_TRUE(owner.Register(closed_, memory_, 2 * kPage).ok());
    // All of it is a hole, which a worker populates.
    EXPECT_TRUE(unsealed_->Attach(MemoryFile(2 * kPage)).ok());
  }
  // While it is busy.
  void Queue() {
    Session& session = *owner_.session;
    EXPECT_TRUE(
        session.Begin()->memory().Allocate({.size = kPage}, [this](const auto& got) { Note(got.status()); }).ok());
    EXPECT_TRUE(session.Begin()->memory().Seal(unsealed_, NoteIt()).pending());
    EXPECT_TRUE(session.Begin()->memory().Release(released_, NoteIt()).pending());
    const auto note = [this](const absl::StatusOr<Registration>& got) { Note(got.status()); };
    EXPECT_TRUE(owner_.BeginRegister(owner_.Region(domain_), memory_, 2 * kPage, {}, note).ok());
    EXPECT_TRUE(session.Begin()->regions().Deregister(registered_, {}, NoteIt()).pending());
    const MemoryRegionId fast = *session.Begin()->regions().Create(domain_, true);
    EXPECT_TRUE(session.Begin()->regions().Initialize({.region = fast, .max_pages = 2}, {}, NoteIt()).pending());
    EXPECT_TRUE(session.Begin()
                    ->regions()
                    .Close(closed_, {}, [this](const absl::Status& status) { region_closed.Set(status); })
                    .pending());
  }
  std::vector<ErrorReason> outcomes() const {
    MutexLock lock(mutex_);
    return outcomes_;
  }

  Awaited<absl::Status> region_closed;

 private:
  void Note(const absl::Status& status) {
    MutexLock lock(mutex_);
    outcomes_.push_back(ErrorInfoOf(status).reason);
  }
  Done<> NoteIt() {
    return [this](const absl::Status& status) { Note(status); };
  }

  Owner& owner_;
  const ProtectionDomainId domain_;
  const MemoryObjectId memory_;
  const MemoryObjectId released_;
  std::shared_ptr<MemoryObject> unsealed_;
  const MemoryRegionId registered_;
  const MemoryRegionId closed_;
  mutable Mutex mutex_;
  std::vector<ErrorReason> outcomes_ RNICD_GUARDED_BY(mutex_);
};

// A session with thousands of queued requests must not keep its memory, or the daemon's stop waiting, until each had
// its turn. The worker stays busy to the end of the test.
TEST(SessionEnd, CancelsWhatIsQueuedAndDoesNotWaitForIt) {
  World world(WithOneWorker());
  Owner owner(world);
  QueuedRequests requests(owner);
  const uint64_t registered = world.observer.counts().registered;
  const BusyWorkers busy(*world.workers, 1);
  requests.Queue();
  EXPECT_TRUE(requests.outcomes().empty());
  const Reclaimed reclaimed = world.End(owner.session, EndCause::kProcessExited);
  EXPECT_EQ(requests.outcomes(), std::vector<ErrorReason>(6, ErrorReason::SESSION_ENDING));
  EXPECT_TRUE(requests.region_closed.Get().value_or(absl::UnknownError("never")).ok()) << "a close never fails";
  EXPECT_EQ(reclaimed.failures, 0u);
  EXPECT_EQ(world.Held(), "");
  EXPECT_EQ(world.soft.live_regions(), 0u);
  EXPECT_EQ(world.os.live_mappings(), 0u);
  EXPECT_EQ(world.observer.counts().registered, registered) << "nothing queued reached the card";
}

TEST(SessionEnd, WhatIsQueuedForOthersStaysQueued) {
  World world(WithOneWorker());
  Owner owner(world);
  Owner sibling(world, 2);
  QueuedRequests requests(owner);
  QueuedRequests of_sibling(sibling);
  BusyWorkers busy(*world.workers, 1);
  requests.Queue();
  of_sibling.Queue();
  world.End(owner.session);
  EXPECT_TRUE(of_sibling.outcomes().empty());
  busy.Release();
  EXPECT_TRUE(of_sibling.region_closed.Get().has_value());
  EXPECT_EQ(of_sibling.outcomes().size(), 6u);
  EXPECT_THAT(of_sibling.outcomes(), ::testing::Not(::testing::Contains(ErrorReason::SESSION_ENDING)));
}

TEST(SessionEnd, MemoryThatIsBeingPopulatedIsNotFinished) {
  // Used by the worker until the end.
  Barrier between;
  World world(WithOneWorker());
  Owner owner(world);
  Awaited<absl::Status> allocated;
  BusyWorkers first(*world.workers, 1);
  const auto done = [&](const absl::StatusOr<MemoryTicket>& got) { allocated.Set(got.status()); };
  ASSERT_TRUE(owner.session->Begin()->memory().Allocate({.size = uint64_t{2} << 20}, done).ok());
  world.workers->PostFor(UINT64_MAX, [&] { between.Pass(); });
  first.Release();
  between.AwaitWaiter();
  EXPECT_EQ(world.os.live_mappings(), 1u) << "a piece of it is populated";
  world.End(owner.session);
  EXPECT_THAT(*allocated.Get(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(world.os.live_mappings(), 0u);
  EXPECT_EQ(world.Held(), "");
  between.Open();
}

TEST(SessionEnd, ARequestThatAWorkerHasBegunIsFinished) {
  World world(WithOneWorker());
  Owner owner(world);
  Barrier answering;
  Awaited<absl::Status> allocated;
  ASSERT_TRUE(owner.session->Begin()
                  ->memory()
                  .Allocate({.size = kPage},
                            [&](const absl::StatusOr<MemoryTicket>& got) {
                              allocated.Set(got.status());
                              answering.Pass();
                            })
                  .ok());
  answering.AwaitWaiter();
  Awaited<Reclaimed> ended;
  world.registry.End(owner.session, EndCause::kEvicted, [&](const Reclaimed& reclaimed) { ended.Set(reclaimed); });
  EXPECT_EQ(ended.times(), 0) << "the worker holds the session";
  answering.Open();
  ASSERT_TRUE(ended.Get().has_value());
  EXPECT_EQ(ended.Get()->memory_bytes, kPage) << "it succeeded first and was then taken back";
  EXPECT_TRUE(allocated.Get()->ok());
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionEnd, ACancelledRequestIsReportedBeforeTheLastEvent) {
  World world(WithOneWorker());
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  const MemoryObjectId memory = owner.Memory(2);
  const BusyWorkers busy(*world.workers, 1);
  ASSERT_TRUE(owner.BeginRegister(region, memory, 2 * kPage, {.to_events = true, .request_context = 9}, nullptr).ok());
  EXPECT_EQ(world.End(owner.session, EndCause::kEvicted).pinned_bytes, 0u);
  auto event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(std::get<RequestCompleted>(event->body).request_context, 9u);
  EXPECT_THAT(std::get<RequestCompleted>(event->body).status, FailsWith(ErrorReason::SESSION_ENDING));
  event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(std::get<SessionEnding>(event->body).cause, EndCause::kEvicted);
  EXPECT_TRUE(owner.session->events().Drained());
  EXPECT_EQ(world.Held(), "");
}

// An executor that ends a session at the worst moment: when a request has been admitted and its job is being queued.
class EndingExecutor final : public Executor {
 public:
  explicit EndingExecutor(Executor& under) : under_(under) {}
  void Enqueue(const JobOwner& owner, std::function<void()> job) override {
    if (const std::function<void()> end = std::exchange(before_next, nullptr); end != nullptr) {
      end();
    }
    under_.Enqueue(owner, std::move(job));
  }
  std::vector<std::function<void()>> Withdraw(const JobOwner& owner) override {
    auto withdrawn = under_.Withdraw(owner);
    looked.Set(true);
    return withdrawn;
  }

  std::function<void()> before_next;
  Awaited<bool> looked;

 private:
  Executor& under_;
};

TEST(SessionEnd, AJobQueuedWhileTheSessionEndsIsCancelledToo) {
  WorldGround ground(WithOneWorker());
  EndingExecutor workers(*ground.workers);
  WiredNode wired({.os = ground.os,
                   .clock = ground.clock,
                   .random = ground.random,
                   .provider = ground.provider,
                   .observer = ground.observer,
                   .workers = workers,
                   .reapers = *ground.reapers});
  auto session = wired.registry.Open(CallerNumbered(1), "");
  ASSERT_TRUE(session.ok());
  const BusyWorkers busy(*ground.workers, 1);
  Awaited<Reclaimed> ended;
  workers.before_next = [&] {
    wired.registry.End(*session, EndCause::kEvicted, [&](const Reclaimed& reclaimed) { ended.Set(reclaimed); });
    EXPECT_TRUE(workers.looked.Get().has_value()) << "the end looks at the queue before the job is in it";
  };
  Awaited<absl::Status> allocated;
  const auto done = [&](const absl::StatusOr<MemoryTicket>& got) { allocated.Set(got.status()); };
  ASSERT_TRUE((*session)->Begin()->memory().Allocate({.size = kPage}, done).ok());
  EXPECT_TRUE(ended.Get().has_value());
  EXPECT_THAT(allocated.Get().value_or(absl::OkStatus()), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_TRUE(wired.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
}

TEST(SessionEnd, OnlyTheFirstCauseCountsAndEveryCallbackRuns) {
  World world;
  Owner owner(world);
  Awaited<Reclaimed> first;
  Awaited<Reclaimed> second;
  {
    const auto guard = owner.session->Begin();
    owner.session->End(EndCause::kEvicted, [&](const Reclaimed& reclaimed) { first.Set(reclaimed); });
    world.registry.End(owner.session, EndCause::kClosed, [&](const Reclaimed& reclaimed) { second.Set(reclaimed); });
  }
  EXPECT_TRUE(first.Get().has_value());
  EXPECT_TRUE(second.Get().has_value());
  EXPECT_EQ(world.observer.counts().cause, EndCause::kEvicted);
  Awaited<Reclaimed> late;
  owner.session->End(EndCause::kClosed, [&](const Reclaimed& reclaimed) { late.Set(reclaimed); });
  EXPECT_EQ(late.times(), 1) << "an ended session answers at once";
  EXPECT_EQ(world.observer.counts().ended, 1u);
}

TEST(SessionEnd, ACloseThatWaitedIsReportedWhenItsSessionEnds) {
  World world;
  Owner owner(world);
  const AdapterId adapter = owner.Adapter();
  const ProtectionDomainId domain = owner.Domain(adapter);
  owner.Region(domain);
  Awaited<absl::Status> adapter_closed;
  ASSERT_TRUE(owner.session->Begin()
                  ->adapters()
                  .Close(adapter, [&](const absl::Status& status) { adapter_closed.Set(status); })
                  .pending());
  ASSERT_TRUE(
      owner.session->Begin()->domains().Close(domain, {.to_events = true, .request_context = 3}, nullptr).pending());
  world.End(owner.session);
  EXPECT_EQ(adapter_closed.times(), 1);
  const auto event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(std::get<RequestCompleted>(event->body).request_context, 3u);
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionEnd, TicketsDieWithTheirSession) {
  World world;
  Owner owner(world);
  const auto import = owner.session->Begin()->memory().Import(kPage);
  ASSERT_TRUE(import.ok());
  EXPECT_EQ(world.tickets.size(), 1u);
  world.End(owner.session);
  EXPECT_EQ(world.tickets.size(), 0u);
  EXPECT_EQ(world.Held(), "");
}

// Objects of a client with traffic: requests that wait in both queues, a fast registration over a released mapping, a
// live mapping, a bound window, an armed queue with a notification that was not fetched.
void FurnishQueues(Connected& scene) {
  QueueOwner& owner = scene.owner;
  const BuiltLam released = owner.Lam(owner.Memory(2), 2);
  const MemoryRegionId region = owner.FastRegion();
  owner.Lam(owner.Memory(1), 1);
  owner.MustPost(scene.pair, {FastRegister(region, PagesOf(released), kOpFlagRemoteWrite),
                              Bind(owner.RegisteredRegion(), owner.Window()), Send(), Send(), Receive()});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(released.id).ok());
  ASSERT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kAny).ok());
}

TEST(SessionEnd, TakesQueuesRegistrationsWindowsAndMappingsBack) {
  Connected scene;
  FurnishQueues(scene);
  const Reclaimed reclaimed = scene.world.End(scene.owner.session, EndCause::kProcessExited);
  EXPECT_EQ(reclaimed.regions, 2u);
  EXPECT_EQ(reclaimed.pinned_bytes, 4 * kPage) << "released pages that are registered, a mapping, a registration";
  EXPECT_EQ(reclaimed.failures, 0u);
  EXPECT_EQ(scene.world.Held(),
            "sessions=1 adapters=1 protection_domains=1 completion_queues=1 cq_entries=64 queue_pairs=1 "
            "queue_entries=8 ")
      << "only the peer's is left";
  EXPECT_EQ(scene.world.soft.live_regions(), 0u);
  EXPECT_EQ(scene.world.os.live_mappings(), 0u);
  EXPECT_EQ(std::get<SessionEnding>(scene.owner.session->events().Pop()->body).cause, EndCause::kProcessExited)
      << "the notification of a closed queue is withdrawn";
  EXPECT_TRUE(scene.owner.session->events().Drained());
}

TEST(SessionEnd, TakesQueuesBackEvenWhenTheCardRefuses) {
  Connected scene;
  FurnishQueues(scene);
  scene.world.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 100);
  EXPECT_EQ(scene.world.End(scene.owner.session).failures, 1u);
  EXPECT_EQ(scene.world.soft.live_regions(), 0u);
  scene.world.End(scene.peer.session);
  EXPECT_EQ(scene.world.Held(), "");
}

TEST(SessionEnd, ThePeerOfAnEndedSessionIsNotifiedOnceAndItsRequestsTimeOut) {
  Connected scene;
  scene.peer.MustPost(scene.peer_pair, {Send(), Receive()});
  scene.world.End(scene.owner.session, EndCause::kProcessExited);
  EXPECT_EQ(scene.peer.NextEvent<QpDisconnected>().queue_pair, scene.peer_pair);
  EXPECT_TRUE(scene.peer.HasNoEvent());
  EXPECT_EQ(scene.peer.Statuses(), (std::vector<NtStatus>{NtStatus::kIoTimeout, NtStatus::kCancelled}));
}

TEST(SessionEnd, AWriteFromAPeerReachesNothingOfAnEndedSession) {
  Connected scene;
  const MemoryObjectId memory = scene.owner.Memory(1);
  const auto registered = scene.owner.Register(scene.owner.Region(scene.owner.domain), memory, kPage);
  ASSERT_TRUE(registered.ok());
  scene.world.End(scene.owner.session);
  scene.peer.MustPost(scene.peer_pair, {Write({InlineSge("x")}, kRegionBase, registered->remote_token, kOpFlagInline)});
  EXPECT_EQ(scene.peer.Statuses(), std::vector<NtStatus>{NtStatus::kIoTimeout});
}

TEST(SessionEnd, SessionsThatAreConnectedEndSideBySide) {
  Connected scene;
  FurnishQueues(scene);
  scene.world.registry.Drain(EndCause::kDaemonStopping);
  ASSERT_TRUE(scene.world.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(scene.world.Held(), "");
}

TEST(SessionEnd, ClosesOfQueuesAndBoundRegionsThatWaitedAreReported) {
  Connected scene;
  QueueOwner& owner = scene.owner;
  const MemoryRegionId region = owner.RegisteredRegion();
  owner.MustPost(scene.pair, {Bind(region, owner.Window())});
  Awaited<absl::Status> region_closed;
  ASSERT_TRUE(owner.session->Begin()
                  ->regions()
                  .Close(region, {}, [&](const absl::Status& status) { region_closed.Set(status); })
                  .pending());
  ASSERT_TRUE(owner.session->Begin()
                  ->queues()
                  .Close(owner.queue, {.to_events = true, .request_context = 3}, nullptr)
                  .pending());
  scene.world.End(owner.session);
  EXPECT_EQ(region_closed.times(), 1);
  EXPECT_EQ(owner.NextEvent<RequestCompleted>().request_context, 3u);
  owner.NextEvent<SessionEnding>();
}

TEST(SessionEnd, ALostConnectionOfADeadProcessCountsAsItsExit) {
  World world;
  Caller dead = CallerNumbered(1);
  dead.handle = std::make_shared<FakeProcess>(true);
  auto session = world.registry.Open(dead, "");
  world.registry.DropConnection(*session);
  ASSERT_TRUE(world.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(world.observer.counts().cause, EndCause::kProcessExited);
  session = world.registry.Open(CallerNumbered(2), "");
  world.registry.DropConnection(*session);
  ASSERT_TRUE(world.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
  EXPECT_EQ(world.observer.counts().cause, EndCause::kConnectionLost);
}

}  // namespace
}  // namespace rnicd::core
