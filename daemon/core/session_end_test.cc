// How a session ends: nothing it owned stays, whatever was in progress.

#include "daemon/core/fd_exchange.h"
#include "daemon/core/queue_fixture_test.h"

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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(ended.times(), 0);
    EXPECT_EQ(world.soft.live_regions(), 1u) << "nothing is torn down under a request";
  }
  EXPECT_TRUE(ended.Get().has_value());
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionEnd, APendingRequestIsReportedBeforeTheLastEvent) {
  WorldOptions options = SlowFromTwoPages();
  options.workers = 1;
  World world(options);
  Owner owner(world);
  const MemoryRegionId region = owner.Region();
  const MemoryObjectId memory = owner.Memory(2);
  BusyWorkers busy(*world.workers, 1);
  ASSERT_TRUE(owner.BeginRegister(region, memory, 2 * kPage, {.to_events = true, .request_context = 9}, nullptr).ok());
  Awaited<Reclaimed> ended;
  world.registry.End(owner.session, EndCause::kEvicted, [&](const Reclaimed& reclaimed) { ended.Set(reclaimed); });
  busy.Release();
  ASSERT_TRUE(ended.Get().has_value());
  EXPECT_EQ(ended.Get()->pinned_bytes, 2 * kPage) << "the registration succeeded first and was then taken back";
  auto event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(std::get<RequestCompleted>(event->body).request_context, 9u);
  event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(std::get<SessionEnding>(event->body).cause, EndCause::kEvicted);
  EXPECT_TRUE(owner.session->events().Drained());
  EXPECT_EQ(world.Held(), "");
}

TEST(SessionEnd, DuringAnAllocationTheAllocationIsAnsweredAndTakenBack) {
  WorldOptions options;
  options.workers = 1;
  World world(options);
  Owner owner(world);
  BusyWorkers busy(*world.workers, 1);
  Awaited<absl::StatusOr<MemoryTicket>> allocated;
  ASSERT_TRUE(owner.session
                  ->AllocateMemory({.size = kPage},
                                   [&](const absl::StatusOr<MemoryTicket>& outcome) { allocated.Set(outcome); })
                  .ok());
  Awaited<Reclaimed> ended;
  world.registry.End(owner.session, EndCause::kProcessExited, [&](const Reclaimed& got) { ended.Set(got); });
  EXPECT_EQ(ended.times(), 0);
  busy.Release();
  const auto ticket = allocated.Get();
  ASSERT_TRUE(ticket.has_value() && ticket->ok());
  ASSERT_TRUE(ended.Get().has_value());
  EXPECT_EQ(ended.Get()->memory_bytes, kPage);
  EXPECT_EQ(allocated.times(), 1);
  EXPECT_EQ(world.os.live_mappings(), 0u);
  EXPECT_EQ(world.Held(), "");
  EXPECT_THAT(ExchangeFd(world.node, owner.session->owner(), (*ticket)->ticket, UniqueFd()).status(),
              FailsWith(ErrorReason::TICKET_UNKNOWN));
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
  ASSERT_EQ(*owner.session->CloseAdapter(adapter, [&](const absl::Status& status) { adapter_closed.Set(status); }),
            Progress::kPending);
  ASSERT_EQ(*owner.session->ClosePd(domain, {.to_events = true, .request_context = 3}, nullptr), Progress::kPending);
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
  const auto import = owner.session->ImportMemory(kPage);
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
  ASSERT_TRUE(owner.session->ReleaseLam(released.id).ok());
  ASSERT_TRUE(owner.session->ArmCq(owner.queue, CqNotifyType::kAny).ok());
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
  ASSERT_EQ(*owner.session->CloseMr(region, {}, [&](const absl::Status& status) { region_closed.Set(status); }),
            Progress::kPending);
  ASSERT_EQ(*owner.session->CloseCq(owner.queue, {.to_events = true, .request_context = 3}, nullptr),
            Progress::kPending);
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
