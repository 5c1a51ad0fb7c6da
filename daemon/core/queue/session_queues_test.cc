// Queues, windows and mappings of a session: the cost of each, the order of their closes, and the state after a failure
// of the card.

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

TEST(SessionQueues, EveryStepIsCountedAndGivenBack) {
  World world;
  QueueOwner owner(world, 1, /*depth=*/10);
  const std::string base = "sessions=1 adapters=1 protection_domains=1 ";
  EXPECT_EQ(world.Held(), base + "completion_queues=1 cq_entries=10 ");
  const QueuePairId pair = owner.Pair();
  EXPECT_EQ(world.Held(), base + "completion_queues=1 cq_entries=10 queue_pairs=1 queue_entries=8 ");
  const MemoryWindowId window = owner.Window();
  const MemoryRegionId region = owner.FastRegion(16);
  const MemoryObjectId memory = owner.Memory(2);
  const BuiltLam lam = owner.Lam(memory, 2);
  EXPECT_EQ(world.Held(),
            "sessions=1 adapters=1 protection_domains=1 memory_objects=1 memory_bytes=8192 regions=1 "
            "pinned_bytes=8192 logical_mappings=1 fast_register_pages=16 completion_queues=1 cq_entries=10 "
            "queue_pairs=1 queue_entries=8 windows=1 registered_bytes=8192 logical_pages=2 ");
  EXPECT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_TRUE(owner.CloseWindow(window).ok());
  EXPECT_TRUE(owner.Close(region).ok());
  EXPECT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_TRUE((*owner.session->Begin()->memory().Find(memory))->Release().ok());
  EXPECT_TRUE(owner.CloseQueue(owner.queue).ok());
  EXPECT_EQ(world.Held(), base);
}

TEST(SessionQueues, TheIdsOfAnotherSessionNameNothing) {
  Connected scene;
  QueueOwner& other = scene.owner;
  const auto mine = scene.peer.session->Begin();
  ASSERT_TRUE(mine.ok());
  const BuiltLam lam = other.Lam(other.Memory(1), 1);
  const MemoryWindowId window = other.Window();
  const auto absent = [](const char* field) { return FailsAt(ErrorReason::OBJECT_NOT_FOUND, std::string(field)); };
  EXPECT_THAT(mine->queues().Create(other.adapter, 1, 0).status(), absent("adapter_id"));
  EXPECT_THAT(mine->queues().Resize(other.queue, 1), absent("cq_id"));
  EXPECT_THAT(mine->queues().Arm(other.queue, CqNotifyType::kAny), absent("cq_id"));
  EXPECT_THAT(mine->queues().GetResults(other.queue, 1).status(), absent("cq_id"));
  EXPECT_THAT(mine->queues().Close(other.queue, {}, nullptr).status(), absent("cq_id"));
  CreateQpArguments arguments = scene.peer.PairArguments();
  arguments.domain = other.domain;
  EXPECT_THAT(mine->pairs().Create(arguments).status(), absent("pd_id"));
  arguments = scene.peer.PairArguments();
  arguments.receive_queue = other.queue;
  EXPECT_THAT(mine->pairs().Create(arguments).status(), absent("receive_cq_id"));
  arguments = scene.peer.PairArguments();
  arguments.initiator_queue = other.queue;
  EXPECT_THAT(mine->pairs().Create(arguments).status(), absent("initiator_cq_id"));
  EXPECT_THAT(mine->pairs().Query(scene.pair).status(), absent("qp_id"));
  EXPECT_THAT(mine->pairs().Connect(scene.pair, ""), absent("qp_id"));
  EXPECT_THAT(mine->pairs().Disconnect(scene.pair), absent("qp_id"));
  EXPECT_THAT(mine->pairs().Flush(scene.pair), absent("qp_id"));
  EXPECT_THAT(mine->pairs().Close(scene.pair, {}, nullptr).status(), absent("qp_id"));
  EXPECT_THAT(mine->windows().Create(other.domain).status(), absent("pd_id"));
  EXPECT_THAT(mine->windows().GetRemoteToken(window).status(), absent("mw_id"));
  EXPECT_THAT(mine->windows().Close(window, {}, nullptr).status(), absent("mw_id"));
  EXPECT_THAT(mine->domains().GetPrivilegedMemoryRegionToken(other.domain).status(), absent("pd_id"));
  EXPECT_THAT(mine->mappings().Build({.adapter = other.adapter}).status(), absent("adapter_id"));
  EXPECT_THAT(mine->mappings().Release(lam.id), absent("lam_id"));
  EXPECT_EQ(other.State(scene.pair), QueuePairState::kReadyToSend) << "and nothing happened to them";
}

TEST(SessionQueues, ADepthOutsideItsRangeIsRefused) {
  World world;
  QueueOwner owner(world);
  const std::string held = world.Held();
  const uint32_t most = owner.session->Begin()->adapters().QueryInfo(owner.adapter)->max_cq_depth;
  for (const uint32_t above : {most + 1, UINT32_MAX}) {
    EXPECT_THAT(owner.session->Begin()->queues().Create(owner.adapter, above, 0).status(),
                FailsAt(ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth"));
    EXPECT_THAT(owner.session->Begin()->queues().Resize(owner.queue, above),
                FailsAt(ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth"));
  }
  EXPECT_THAT(owner.session->Begin()->queues().Create(owner.adapter, 0, 0).status(),
              FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth"));
  EXPECT_THAT(owner.session->Begin()->queues().Resize(owner.queue, 0),
              FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth"));
  EXPECT_EQ(world.Held(), held);
  EXPECT_TRUE(owner.session->Begin()->queues().Resize(owner.queue, most).ok());
  EXPECT_TRUE(owner.session->Begin()->queues().Create(owner.adapter, most, 0).ok());
}

TEST(SessionQueues, AnAdapterWithoutTheFlagResizesNoQueue) {
  WorldOptions options;
  options.soft.adapter_flags = kAdapterFlagLoopback;
  World world(options);
  QueueOwner owner(world);
  EXPECT_THAT(owner.session->Begin()->queues().Resize(owner.queue, 1), FailsWith(ErrorReason::DEVICE_NOT_CAPABLE));
}

TEST(SessionQueues, WhatTheCardRefusesLeavesNothingBehind) {
  World world;
  QueueOwner owner(world);
  const std::string held = world.Held();
  for (const ErrorReason reason : {ErrorReason::DEVICE_OUT_OF_RESOURCES, ErrorReason::DEVICE_FAILED}) {
    world.plan.FailCreateCompletionQueue(MakeError(reason), 1);
    EXPECT_THAT(owner.session->Begin()->queues().Create(owner.adapter, 5, 0).status(), FailsWith(reason));
    world.plan.FailCreateQueuePair(MakeError(reason), 1);
    EXPECT_THAT(owner.session->Begin()->pairs().Create(owner.PairArguments()).status(), FailsWith(reason));
    world.plan.FailCreateMemoryWindow(MakeError(reason), 1);
    EXPECT_THAT(owner.session->Begin()->windows().Create(owner.domain).status(), FailsWith(reason));
    EXPECT_EQ(world.Held(), held);
  }
  EXPECT_TRUE(owner.session->Begin()->queues().Close(owner.queue, {}, nullptr).succeeded());
  EXPECT_TRUE(owner.session->Begin()->domains().Close(owner.domain, {}, nullptr).succeeded());
  EXPECT_TRUE(owner.session->Begin()->adapters().Close(owner.adapter, nullptr).succeeded())
      << "nothing holds it any more";
}

TEST(SessionQueues, AQueueClosesAfterItsPairsAndIsUsableUntilThen) {
  World world;
  QueueOwner owner(world);
  const QueuePairId first = owner.Pair();
  const QueuePairId second = owner.Pair();
  ASSERT_TRUE(owner.session->Begin()->queues().Close(owner.queue, ToEvents(9), nullptr).pending());
  EXPECT_THAT(owner.session->Begin()->queues().Close(owner.queue, {}, nullptr).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "cq_id"));
  EXPECT_THAT(owner.session->Begin()->queues().Resize(owner.queue, 1), FailsAt(ErrorReason::OBJECT_CLOSING, "cq_id"));
  owner.MustPost(first, {Receive()});
  ASSERT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kAny).ok());
  ASSERT_TRUE(owner.ClosePair(first).ok());
  EXPECT_EQ(owner.NextEvent<CqNotified>().queue, owner.queue);
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kCancelled});
  EXPECT_TRUE(owner.HasNoEvent());
  ASSERT_TRUE(owner.ClosePair(second).ok());
  EXPECT_THAT(owner.session->Begin()->queues().GetResults(owner.queue, 1).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "cq_id"));
  EXPECT_EQ(owner.session->ledger().used(Resource::kCqEntries), 0u);
  EXPECT_EQ(owner.session->ledger().used(Resource::kCompletionQueues), 1u) << "its completion was not fetched yet";
  const auto closed = owner.NextEvent<RequestCompleted>();
  EXPECT_EQ(closed.kind, RequestKind::kCloseCq);
  EXPECT_EQ(closed.object_id, owner.queue.value);
  EXPECT_EQ(closed.request_context, 9u);
  EXPECT_TRUE(closed.status.ok());
  EXPECT_EQ(owner.session->ledger().used(Resource::kCompletionQueues), 0u);
}

TEST(SessionQueues, ParentsCloseAfterTheirChildrenInOrder) {
  World world;
  QueueOwner owner(world);
  const QueuePairId pair = owner.Pair();
  const MemoryWindowId window = owner.Window();
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  std::vector<std::string> order;
  const auto note = [&order](const char* what) {
    return [&order, what](const absl::Status& status) { order.emplace_back(status.ok() ? what : "failed"); };
  };
  ASSERT_TRUE(owner.session->Begin()->adapters().Close(owner.adapter, note("adapter")).pending());
  ASSERT_TRUE(owner.session->Begin()->domains().Close(owner.domain, {}, note("domain")).pending());
  ASSERT_TRUE(owner.session->Begin()->queues().Close(owner.queue, {}, note("queue")).pending());
  EXPECT_THAT(owner.session->Begin()->queues().Create(owner.adapter, 1, 0).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "adapter_id"));
  EXPECT_THAT(owner.TryLam(owner.Memory(1), kPage).status(), FailsAt(ErrorReason::OBJECT_CLOSING, "adapter_id"));
  EXPECT_THAT(owner.session->Begin()->windows().Create(owner.domain).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "pd_id"));
  EXPECT_THAT(owner.session->Begin()->pairs().Create(owner.PairArguments()).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "pd_id"));
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_EQ(order, std::vector<std::string>{"queue"});
  ASSERT_TRUE(owner.CloseWindow(window).ok());
  EXPECT_EQ(order, (std::vector<std::string>{"queue", "domain"}));
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(order, (std::vector<std::string>{"queue", "domain", "adapter"}));
}

// The post is kept inside its queue pair by an event stream that does not return.
TEST(SessionQueues, APairThatIsPostedToClosesWhenThePostHasReturned) {
  Connected scene;
  QueueOwner& owner = scene.owner;
  Barrier barrier;
  std::atomic<bool> armed = false;
  ASSERT_TRUE(owner.session->events().Attach([&] {
    if (armed) {
      barrier.Pass();
    }
  }));
  ASSERT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kAny).ok());
  armed = true;
  std::thread poster([&] { owner.MustPost(scene.pair, {Write({}, 0, RemoteToken{})}); });
  barrier.AwaitWaiter();
  EXPECT_TRUE(owner.session->Begin()->pairs().Close(scene.pair, ToEvents(4), nullptr).pending());
  EXPECT_THAT(owner.session->Begin()->pairs().Query(scene.pair).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
  EXPECT_EQ(owner.session->ledger().used(Resource::kQueuePairs), 1u);
  armed = false;
  barrier.Open();
  poster.join();
  owner.NextEvent<CqNotified>();
  const auto closed = owner.NextEvent<RequestCompleted>();
  EXPECT_EQ(closed.kind, RequestKind::kCloseQp);
  EXPECT_EQ(closed.request_context, 4u);
  EXPECT_EQ(closed.object_id, scene.pair.value);
  EXPECT_EQ(owner.session->ledger().used(Resource::kQueuePairs), 0u);
  owner.session->events().Detach();
}

TEST(SessionQueues, AClosedPairIsUnknown) {
  World world;
  QueueOwner owner(world);
  const QueuePairId pair = owner.Pair();
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_THAT(owner.ClosePair(pair), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
  EXPECT_THAT(owner.session->Begin()->pairs().Flush(pair), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
}

TEST(SessionQueues, AnEndingSessionClosesNoPairAndNoWindowOnRequest) {
  World world;
  QueueOwner owner(world);
  const QueuePairId pair = owner.Pair();
  const MemoryWindowId window = owner.Window();
  const MemoryRegionId region = owner.NewFastRegion();
  world.End(owner.session);
  EXPECT_THAT(owner.ClosePair(pair), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_THAT(owner.CloseWindow(window), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_THAT(owner.Initialize(region, 1, true), FailsWith(ErrorReason::SESSION_ENDING));
}

TEST(SessionQueues, ThePrivilegedTokenIsTheDomainsForLife) {
  World world;
  QueueOwner owner(world);
  const auto token = owner.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner.domain);
  ASSERT_TRUE(token.ok());
  EXPECT_NE(token->value, 0u);
  EXPECT_EQ(*owner.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner.domain), *token);
  EXPECT_NE(*owner.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner.Domain(owner.adapter)), *token);
}

TEST(SessionMappings, SayWhereTheirPagesAreAndWhereTheRangeBegins) {
  World world;
  QueueOwner owner(world);
  const MemoryObjectId memory = owner.Memory(3);
  const auto lam = owner.TryLam(memory, kPage + 2, kPage - 1);
  ASSERT_TRUE(lam.ok()) << lam.status();
  EXPECT_EQ(lam->pages, 3u);
  EXPECT_EQ(lam->fbo, kPage - 1);
  EXPECT_EQ(lam->first.value % kPage, 0u);
  EXPECT_NE(owner.Lam(memory, 1).first, lam->first) << "the same pages may be mapped more than once";
  EXPECT_EQ(owner.session->ledger().used(Resource::kRegisteredBytes), 4 * kPage);
  EXPECT_EQ(owner.session->ledger().used(Resource::kPinnedBytes), 3 * kPage);
}

TEST(SessionMappings, TooLittleRoomIsRefusedWithWhatIsNeededAndMapsNothing) {
  World world;
  QueueOwner owner(world);
  const MemoryObjectId memory = owner.Memory(3);
  const MdlEntry entry{.memory_id = memory, .byte_count = 3 * kPage, .virtual_address = {kRegionBase}};
  BuildLamArguments arguments{.adapter = owner.adapter, .chain = {&entry, 1}, .length = 3 * kPage};
  const std::string held = world.Held();
  for (const uint64_t room : {0, 39}) {
    arguments.lam_size = room;
    const absl::Status refused = owner.session->Begin()->mappings().Build(arguments).status();
    EXPECT_THAT(refused, FailsAt(ErrorReason::BUFFER_TOO_SMALL, "lam_size"));
    EXPECT_EQ(ErrorInfoOf(refused).requested, 40u);
    EXPECT_EQ(ErrorInfoOf(refused).limit, room);
  }
  EXPECT_EQ(world.Held(), held);
  arguments.lam_size = 40;
  EXPECT_TRUE(owner.session->Begin()->mappings().Build(arguments).ok());
}

TEST(SessionMappings, ARefusedChainMapsNothing) {
  World world;
  QueueOwner owner(world);
  const MemoryObjectId memory = owner.Memory(2);
  const std::string held = world.Held();
  const MdlEntry gap[] = {
      {.memory_id = memory, .byte_count = kPage, .virtual_address = {kRegionBase}},
      {.memory_id = memory, .byte_offset = kPage, .byte_count = kPage, .virtual_address = {kRegionBase + 2 * kPage}}};
  EXPECT_THAT(
      owner.session->Begin()->mappings().Build({.adapter = owner.adapter, .chain = gap, .length = 2 * kPage}).status(),
      FailsAt(ErrorReason::MDL_CHAIN_GAP, "mdl_chain[1].virtual_address"));
  EXPECT_THAT(owner.TryLam(memory, 0).status(), FailsAt(ErrorReason::LENGTH_ZERO, "length"));
  EXPECT_THAT(owner.TryLam({}, kPage).status(), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "mdl_chain[0].memory_id"));
  EXPECT_EQ(world.Held(), held);
  EXPECT_TRUE((*owner.session->Begin()->memory().Find(memory))->Release().ok()) << "a refusal keeps no memory";
}

TEST(SessionMappings, AreReleasedOnce) {
  World world;
  QueueOwner owner(world);
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  EXPECT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_THAT(owner.session->Begin()->mappings().Release(lam.id), FailsAt(ErrorReason::OBJECT_NOT_FOUND, "lam_id"));
}

TEST(SessionQueueQuota, CompletionQueuesAndTheirEntriesReportTheirFigures) {
  WorldOptions options = WithSessionLimit(Resource::kCompletionQueues, 2);
  options.limits.session[Resource::kCqEntries] = 100;
  World world(options);
  QueueOwner owner(world, 1, /*depth=*/60);
  const std::string held = world.Held();
  ExpectFigures(owner.session->Begin()->queues().Create(owner.adapter, 41, 0).status(), ErrorReason::QUOTA_CQ_ENTRIES,
                100, 60, 41);
  ExpectFigures(owner.session->Begin()->queues().Resize(owner.queue, 101), ErrorReason::QUOTA_CQ_ENTRIES, 100, 60, 41);
  EXPECT_EQ(world.Held(), held) << "a refusal counts neither the queue nor its entries";
  owner.Queue(40);
  ExpectFigures(owner.session->Begin()->queues().Create(owner.adapter, 1, 0).status(),
                ErrorReason::QUOTA_COMPLETION_QUEUES, 2, 2, 1);
  ASSERT_TRUE(owner.CloseQueue(owner.queue).ok());
  EXPECT_TRUE(owner.session->Begin()->queues().Create(owner.adapter, 60, 0).ok());
}

TEST(SessionQueueQuota, QueuePairsAndTheirEntriesReportTheirFigures) {
  WorldOptions options = WithSessionLimit(Resource::kQueuePairs, 2);
  options.limits.session[Resource::kQueueEntries] = 16;
  World world(options);
  QueueOwner owner(world);
  const QueuePairId pair = owner.Pair();
  const std::string held = world.Held();
  CreateQpArguments arguments = owner.PairArguments();
  arguments.limits.receive_depth = 5;
  ExpectFigures(owner.session->Begin()->pairs().Create(arguments).status(), ErrorReason::QUOTA_QUEUE_ENTRIES, 16, 8, 9);
  EXPECT_EQ(world.Held(), held);
  owner.Pair();
  ExpectFigures(owner.session->Begin()->pairs().Create(owner.PairArguments()).status(), ErrorReason::QUOTA_QUEUE_PAIRS,
                2, 2, 1);
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_TRUE(owner.session->Begin()->pairs().Create(owner.PairArguments()).ok());
}

TEST(SessionQueueQuota, WindowsAndMappingsReportTheirFigures) {
  WorldOptions options = WithSessionLimit(Resource::kWindows, 1);
  options.limits.session[Resource::kLogicalMappings] = 2;
  options.limits.session[Resource::kPinnedBytes] = 3 * kPage;
  World world(options);
  QueueOwner owner(world);
  const MemoryWindowId window = owner.Window();
  ExpectFigures(owner.session->Begin()->windows().Create(owner.domain).status(), ErrorReason::QUOTA_WINDOWS, 1, 1, 1);
  ASSERT_TRUE(owner.CloseWindow(window).ok());
  EXPECT_TRUE(owner.session->Begin()->windows().Create(owner.domain).ok());
  const MemoryObjectId memory = owner.Memory(4);
  const BuiltLam lam = owner.Lam(memory, 1);
  const std::string held = world.Held();
  ExpectFigures(owner.TryLam(memory, 4 * kPage).status(), ErrorReason::QUOTA_PINNED_BYTES, 3 * kPage, kPage, 3 * kPage);
  EXPECT_EQ(world.Held(), held) << "a refusal counts neither the mapping nor its pages";
  owner.Lam(memory, 1);
  ExpectFigures(owner.TryLam(memory, 1).status(), ErrorReason::QUOTA_LOGICAL_MAPPINGS, 2, 2, 1);
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_TRUE(owner.TryLam(memory, 1).ok());
}

}  // namespace
}  // namespace rnicd::core
