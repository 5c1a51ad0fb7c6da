// Mapped completion queues: what a client reads from shared memory, and that no value it writes there can do harm.

#include <random>

#include "daemon/core/queue/mapped_queue_fixture_test.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/core/tenant/heap_cost.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::core {
namespace {

TEST_F(MappedQueueTest, CompletionsAreReadInTheOrderTheyCame) {
  const CreatedMappedCq created = Create(3);
  MappedClient client(owner_.session, created);
  for (uint64_t context = 0; context < 20; context += 2) {
    Push(created, context);
    Push(created, context + 1);
    EXPECT_EQ(client.ReadAll(), (std::vector<uint64_t>{context, context + 1}));
  }
  EXPECT_EQ(client.reader.status(), 0u);
}

TEST_F(MappedQueueTest, EachArmingBringsANotificationThoughNobodyFetchesEvents) {
  const CreatedMappedCq created = Create(8);
  MappedClient client(owner_.session, created);
  Push(created);
  EXPECT_EQ(client.reader.notifications(), 0u) << "it was not armed";
  Arm(created);
  EXPECT_EQ(client.reader.notifications(), 1u) << "for what was there";
  Arm(created);
  EXPECT_EQ(client.reader.notifications(), 1u) << "for nothing new";
  Push(created);
  Push(created);
  EXPECT_EQ(client.reader.notifications(), 2u);
  const auto event = owner_.NextEvent<CqNotified>();
  EXPECT_EQ(event.queue, created.queue);
  EXPECT_EQ(event.context, kQueueContext);
  EXPECT_EQ(event.status, NtStatus::kSuccess);
  EXPECT_TRUE(owner_.HasNoEvent()) << "one event stands for both";
  Arm(created);
  EXPECT_EQ(client.reader.notifications(), 3u);
  EXPECT_EQ(owner_.NextEvent<CqNotified>().queue, created.queue);
  client.ReadAll();
  Arm(created);
  EXPECT_EQ(client.reader.notifications(), 3u) << "what was read needs no notification";
}

TEST_F(MappedQueueTest, ATypeWaitsForItsCompletionsAndTypesCombine) {
  const CreatedMappedCq created = Create(16);
  MappedClient client(owner_.session, created);
  Arm(created, CqNotifyType::kErrors);
  Push(created, 0, NtStatus::kAccessViolation);
  EXPECT_EQ(client.reader.notifications(), 0u);
  Arm(created, CqNotifyType::kSolicited);
  EXPECT_EQ(client.reader.notifications(), 1u) << "at once, for the failure";
  Arm(created, CqNotifyType::kErrors);
  Arm(created, CqNotifyType::kSolicited);
  Push(created);
  EXPECT_EQ(client.reader.notifications(), 1u);
  Push(created, 0, NtStatus::kSuccess, /*solicited=*/true);
  EXPECT_EQ(client.reader.notifications(), 2u);
}

TEST_F(MappedQueueTest, OneMoreThanTheDepthKillsTheQueueAndItsPairs) {
  const CreatedMappedCq created = Create(3);
  MappedClient client(owner_.session, created);
  CreateQpArguments arguments = owner_.PairArguments();
  arguments.receive_queue = created.queue;
  const QueuePairId pair = owner_.Pair(arguments);
  Arm(created, CqNotifyType::kErrors);
  for (uint32_t count = 0; count < 3; ++count) {
    Push(created);
  }
  EXPECT_EQ(client.reader.status(), 0u);
  Push(created);
  EXPECT_EQ(client.reader.status(), static_cast<uint32_t>(NtStatus::kBufferOverflow)) << "though the file has room";
  EXPECT_EQ(client.reader.notifications(), 1u);
  EXPECT_EQ(owner_.NextEvent<CqNotified>().status, NtStatus::kBufferOverflow);
  EXPECT_TRUE(Eventually([&] { return owner_.State(pair) == QueuePairState::kError; }));
  EXPECT_THAT(queues().Resize(created.queue, 3), FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_TRUE(owner_.ClosePair(pair).ok());
  EXPECT_TRUE(owner_.CloseQueue(created.queue).ok());
  EXPECT_EQ(client.reader.status(), static_cast<uint32_t>(NtStatus::kBufferOverflow)) << "the first failure stays";
}

// The model of a valid head: it moves forward, up to the completions that were written.
TEST_F(MappedQueueTest, AHeadThatIsImpossibleChangesNothing) {
  constexpr uint32_t kDepth = 6;
  std::mt19937 random(20);
  for (int round = 0; round < 50; ++round) {
    const CreatedMappedCq created = Create(kDepth);
    MappedClient client(owner_.session, created);
    uint32_t written = 0;
    uint32_t head = 0;
    bool dead = false;
    for (int step = 0; step < 200 && !dead; ++step) {
      const uint32_t wanted =
          random() % 4 == 0 ? static_cast<uint32_t>(random()) : written + static_cast<uint32_t>(random() % 12) - 9;
      ring::StoreRelease(client.header().head, wanted);
      // Read when the queue seems full.
      head = written - head == kDepth && wanted - head <= written - head ? wanted : head;
      dead = written - head == kDepth;
      Push(created, written);
      written += dead ? 0 : 1;
      ASSERT_EQ(client.reader.status() != 0, dead) << "round " << round << " step " << step;
      ASSERT_EQ(ring::LoadAcquire(client.header().tail), written);
    }
    EXPECT_TRUE(owner_.CloseQueue(created.queue).ok());
  }
}

TEST_F(MappedQueueTest, IsResizedUpToItsMappedDepthAndNotBelowItsBacklog) {
  const CreatedMappedCq created = Create(2, /*depth_max=*/5);
  MappedClient client(owner_.session, created);
  EXPECT_THAT(queues().Resize(created.queue, 6), FailsAt(ErrorReason::ABOVE_MAPPED_DEPTH, "cq_depth"));
  EXPECT_TRUE(queues().Resize(created.queue, 5).ok());
  for (uint64_t context = 0; context < 5; ++context) {
    Push(created, context);
  }
  EXPECT_THAT(queues().Resize(created.queue, 4), FailsAt(ErrorReason::CQ_BACKLOG, "cq_depth"));
  EXPECT_EQ(client.ReadAll(), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(queues().Resize(created.queue, 1).ok());
}

TEST_F(MappedQueueTest, NoCallTakesItsCompletions) {
  const CreatedMappedCq created = Create(2);
  Push(created);
  EXPECT_THAT(queues().GetResults(created.queue, 1).status(), FailsAt(ErrorReason::CQ_MAPPED, "cq_id"));
  EXPECT_THAT(queues().Poll(created.queue, 1, std::chrono::milliseconds(1), nullptr).status(),
              FailsAt(ErrorReason::CQ_MAPPED, "cq_id"));
}

TEST_F(MappedQueueTest, WhatIsRefusedLeavesNothingBehind) {
  const std::string held = world_.Held();
  const uint64_t before = heap();
  const uint32_t most = queues().table().Find(owner_.queue)->adapter().info().max_cq_depth;
  EXPECT_THAT(TryCreate(0).status(), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "cq_depth"));
  EXPECT_THAT(TryCreate(5, 4).status(), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "mapped_depth_max"));
  EXPECT_THAT(TryCreate(5, most + 1).status(), FailsAt(ErrorReason::ABOVE_ADAPTER_LIMIT, "mapped_depth_max"));
  for (const char* const call : {"CreateMemoryFile", "AddSeals", "Map", "Populate"}) {
    world_.os.FailNext(call, absl::ResourceExhaustedError("planned"), 1);
    EXPECT_THAT(TryCreate(5).status(), FailsWith(ErrorReason::RINGS_UNAVAILABLE)) << call;
  }
  world_.plan.FailCreateCompletionQueue(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), 1);
  EXPECT_THAT(TryCreate(5).status(), FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  world_.lingering.Sweep();
  EXPECT_EQ(world_.Held(), held);
  EXPECT_EQ(heap(), before);
}

TEST_F(MappedQueueTest, ItsMemoryIsChargedUntilTheClientHasLetGoOfIt) {
  const std::string held = world_.Held();
  const uint64_t before = heap();
  const CreatedMappedCq created = Create(64);
  {
    const MappedClient client(owner_.session, created);
    EXPECT_GE(heap() - before, created.file_bytes);
    EXPECT_TRUE(owner_.CloseQueue(created.queue).ok());
    EXPECT_EQ(world_.ledger->used(Resource::kLingeringBytes), created.file_bytes + kHeapOfMappedQueue);
    EXPECT_EQ(heap() - before, created.file_bytes + kHeapOfMappedQueue);
  }
  world_.lingering.Sweep();
  EXPECT_EQ(world_.Held(), held);
  EXPECT_EQ(heap(), before);
}

TEST_F(MappedQueueTest, ATicketFetchesMemoryAndPipeOnceAndEndsWithTheQueue) {
  const CreatedMappedCq created = Create(4);
  const CreatedMappedCq closed = Create(4);
  EXPECT_TRUE(owner_.CloseQueue(closed.queue).ok());
  const auto fetch = [&](const FdTicket& ticket) {
    return ExchangeFd(world_.node, CallerNumbered(1), ticket, UniqueFd());
  };
  for (const FdTicket& ticket : {created.memory, created.pipe}) {
    const auto fetched = fetch(ticket);
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    EXPECT_TRUE(fetched->valid());
    EXPECT_THAT(fetch(ticket).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  }
  const RecordedDecision decision = world_.observer.counts().decisions.back();
  EXPECT_EQ(decision.what, "fd");
  EXPECT_THAT(fetch(closed.memory).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_THAT(queues().Duplicate(created.queue, SharedDescriptor::kDoorbell).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "cq_id"));
  EXPECT_THAT(queues().Duplicate(owner_.queue, SharedDescriptor::kMemory).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "cq_id"));
}

TEST_F(MappedQueueTest, ACompletionANotificationAndTheEndWakeAClientThatSleeps) {
  const CreatedMappedCq created = Create(4);
  MappedClient client(owner_.session, created);
  std::thread sleeper([&] {
    while (client.ReadAll().empty()) {
      client.reader.Wait(kTimeout);
    }
    while (client.reader.notifications() == 0) {
      client.reader.WaitForNotification(0, kTimeout);
    }
    while (client.reader.status() == 0) {
      client.reader.Wait(kTimeout);
    }
  });
  Push(created);
  Push(created);
  Arm(created);
  Push(created);
  EXPECT_TRUE(owner_.CloseQueue(created.queue).ok());
  sleeper.join();
  EXPECT_EQ(client.reader.status(), static_cast<uint32_t>(NtStatus::kInvalidDeviceState));
}

// The client has looked, and has not gone to sleep yet.
TEST_F(MappedQueueTest, AFailureRightBeforeTheClientSleepsWakesIt) {
  const CreatedMappedCq created = Create(4);
  MappedClient client(owner_.session, created);
  const uint32_t seen = client.header().wakes;
  ring::StoreInOrder(client.header().wakeup, static_cast<uint32_t>(ring::Wakeup::kFutex));
  EXPECT_TRUE(owner_.CloseQueue(created.queue).ok());
  const auto begun = std::chrono::steady_clock::now();
  ring::FutexWait(client.header().wakes, seen, kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kTimeout);
}

// Two pairs complete to one mapped queue while its client reads, arms and never sleeps.
TEST(MappedQueueRace, EachPairsCompletionsArriveOnceAndInOrder) {
  constexpr uint64_t kEach = 3000;
  constexpr uint32_t kDepth = 64;
  World world;
  QueueOwner owner(world, 1);
  QueueOwner peer(world, 2);
  const auto created = owner.session->Begin()->queues().CreateMapped({.adapter = owner.adapter, .depth = kDepth});
  ASSERT_TRUE(created.ok()) << created.status();
  MappedClient client(owner.session, *created);
  std::array<std::atomic<uint64_t>, 2> read{};
  std::vector<std::thread> posters;
  for (uint64_t number = 0; number < read.size(); ++number) {
    CreateQpArguments arguments = owner.PairArguments(/*context=*/number);
    arguments.initiator_queue = created->queue;
    const QueuePairId pair = owner.Pair(arguments);
    ConnectPairs(owner, pair, peer, peer.Pair());
    posters.emplace_back([&owner, &read, pair, number] {
      for (uint64_t context = 0; context < kEach;) {
        WorkRequest request = Write({}, 0, RemoteToken{});
        request.request_context = context;
        // The two together never fill the queue.
        context += context - read[number] < kDepth / 2 ? owner.Post(pair, {request}).posted : 0;
      }
    });
  }
  uint32_t armed = 0;
  Completion completion;
  for (uint64_t left = 2 * kEach; left > 0 && client.reader.status() == 0;) {
    if (client.reader.notifications() == armed) {
      ++armed;
      EXPECT_TRUE(owner.session->Begin()->queues().Arm(created->queue, CqNotifyType::kAny).ok());
    }
    if (client.reader.Poll(&completion)) {
      ASSERT_EQ(completion.request_context, read[completion.qp_context].load());
      EXPECT_TRUE(completion.ok());
      ++read[completion.qp_context];
      --left;
    }
  }
  for (std::thread& poster : posters) {
    poster.join();
  }
  EXPECT_EQ(client.reader.status(), 0u);
  EXPECT_FALSE(client.reader.Poll(&completion));
  EXPECT_LE(client.reader.notifications(), armed);
  EXPECT_GT(client.reader.notifications(), 1u);
}

}  // namespace
}  // namespace rnicd::core
