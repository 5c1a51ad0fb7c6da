// How requests of an engine end after a failure, by the peer, and at the end. One thread, and a scripted card.

#include <future>
#include <thread>

#include "provider/engine/engine_queue_pair.h"
#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

constexpr NtStatus kTimedOut = NtStatus::kIoTimeout;
constexpr NtStatus kRefused = NtStatus::kAccessViolation;

// --- failure ---

TEST(EngineFailure, TheFirstFailureIsReportedAndNothingBehindItSucceeds) {
  const struct {
    const char* claim;
    std::vector<WorkRequest> requests;
    std::vector<std::pair<uint64_t, NtStatus>> ends;
    Outcomes reported;
  } kRows[] = {
      {"a failure cancels the rest, silent ones too",
       {Write(1), Silent(Write(2)), Read(3)},
       {{1, kRefused}},
       {{1, kWritten, kRefused}, {2, kWritten, kCancelled}, {3, kReadOp, kCancelled}}},
      {"what ended well before it ended well",
       {Write(1), Write(2), Write(3)},
       {{1, kOk}, {2, kRefused}},
       {{1, kWritten, kOk}, {2, kWritten, kRefused}, {3, kWritten, kCancelled}}},
      {"what ended well behind it did not",
       {Write(1), Write(2)},
       {{2, kOk}, {1, kRefused}},
       {{1, kWritten, kRefused}, {2, kWritten, kCancelled}}},
      {"what is under way before it is cancelled",
       {Read(1), Write(2)},
       {{2, kRefused}},
       {{1, kReadOp, kCancelled}, {2, kWritten, kRefused}}},
      {"of silent requests only a failure is reported",
       {Silent(Write(1)), Silent(Write(2)), Write(3)},
       {{1, kOk}, {2, kRefused}},
       {{2, kWritten, kRefused}, {3, kWritten, kCancelled}}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.claim);
    Connected side;
    side.near.Post(row.requests);
    for (const auto& [context, status] : row.ends) {
      EXPECT_TRUE(side.card.End(context, status));
    }
    EXPECT_EQ(side.near.initiated(), row.reported);
    EXPECT_EQ(side.card.failed, 1);
    EXPECT_EQ(side.near.engine().state(), QueuePairState::kError);
    EXPECT_TRUE(side.near.Refuses(Write(9), ErrorReason::QP_NOT_CONNECTED));
    EXPECT_EQ(side.far.peer_gone(), 1);
    EXPECT_EQ(side.far.engine().state(), QueuePairState::kReadyToSend);
  }
}

TEST(EngineFailure, ARequestThatFailsWhenItBeginsOrConcludesIsAFailureToo) {
  for (const bool begins : {true, false}) {
    Connected side;
    if (begins) {
      side.card.answers[2] = Always(BeginResult::Done({.status = kRefused, .at_peer = true}));
    } else {
      side.card.conclusions[2] = kRefused;
    }
    side.near.Post({Write(1), Write(2), Write(3)});
    if (!begins) {
      side.card.End(2);
      side.card.End(1);
    }
    EXPECT_EQ(side.near.initiated(),
              (Outcomes{{1, kWritten, begins ? kCancelled : kOk}, {2, kWritten, kRefused}, {3, kWritten, kCancelled}}));
    EXPECT_EQ(side.near.completions()[1].at_peer, begins);
    EXPECT_EQ(side.card.failed, 1);
  }
}

TEST(EngineFailure, TheOldestRequestIsReportedWithTheCauseUnlessItFailedItself) {
  for (const NtStatus status : {kOk, kRefused}) {
    Connected side;
    side.near.Post({Write(1), Write(2)});
    if (status != kOk) {
      ASSERT_TRUE(side.near.engine().Ended(1, {.status = status}));
    }
    side.near.Flush(kTimedOut);
    EXPECT_EQ(side.near.initiated(),
              (Outcomes{{1, kWritten, status == kOk ? kTimedOut : status}, {2, kWritten, kCancelled}}));
  }
}

TEST(EngineFailure, OnlyTheFirstResultOfARequestCounts) {
  Connected side;
  side.near.Post({Write(1), Write(2)});
  EXPECT_TRUE(side.near.engine().Ended(2, {}));
  EXPECT_FALSE(side.near.engine().Ended(2, {.status = kRefused}));
  side.card.End(1);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kOk}}));
  EXPECT_FALSE(side.near.engine().Ended(1, {.status = kRefused})) << "it has been reported";
}

TEST(EngineFailure, WhatTheCardHasIsReportedWhenTheCardHasEndedIt) {
  Connected side;
  side.card.abandons = false;
  side.card.answers[2] = Always(BeginResult::Blocked());
  side.near.Post({Write(1), Write(2), Receive(10)});
  side.near.Flush();
  EXPECT_EQ(side.near.initiated(), Outcomes{}) << "nor what is behind it";
  EXPECT_EQ(side.near.received(), Outcomes{});
  EXPECT_TRUE(side.card.End(1, kCancelled));
  side.card.EndReceive(10, kCancelled);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kCancelled}, {2, kWritten, kCancelled}}));
  EXPECT_EQ(side.near.received(), (Outcomes{{10, kReceived, kCancelled}}));
}

TEST(EngineFailure, ARequestThatACardStartsWhenItHasGivenUpIsCancelled) {
  Connected side;
  side.card.answers[1] = [&](const EngineTurn& /*turn*/) {
    side.near.engine().Fail();
    return BeginResult::Started();
  };
  side.near.Post({Write(1)});
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kCancelled}}));
}

// --- peers ---

TEST(EnginePeers, OnlyItsPeerEntersAndOnlyWhileItIsConnected) {
  EngineFabric fabric;
  EngineSide near(fabric, "near");
  EngineSide far(fabric, "far");
  EngineSide stranger(fabric, "stranger");
  ASSERT_TRUE(near.ConnectTo(far) && stranger.ConnectTo(far));
  EXPECT_FALSE(far.engine().EnterPeer(near.engine().address())) << "it has not connected yet";
  ASSERT_TRUE(far.ConnectTo(near));
  EXPECT_FALSE(far.engine().EnterPeer(stranger.engine().address()));
  EXPECT_TRUE(far.engine().EnterPeer(near.engine().address()));
  far.engine().Release();
  far.Flush();
  EXPECT_FALSE(far.engine().EnterPeer(near.engine().address()));
}

TEST(EnginePeers, AReceiveThatAVisitorHasTakenIsNotFlushed) {
  Connected side;
  side.far.Post({Receive(10), Receive(11)});
  ASSERT_TRUE(side.far.engine().EnterPeer(side.near.engine().address()));
  ASSERT_NE(side.far.engine().TakeReceive(), nullptr);
  side.far.Flush();
  EXPECT_EQ(side.far.received(), Outcomes{});
  side.far.card().EndReceive(10);
  side.far.engine().Release();
  EXPECT_EQ(side.far.received(), (Outcomes{{10, kReceived, kOk}, {11, kReceived, kCancelled}}));
}

TEST(EnginePeers, AnAccessThatThePeersMemoryRefusesFailsThePeerButNoOneElse) {
  Connected side;
  EngineSide stranger(side.fabric, "stranger");
  ASSERT_TRUE(stranger.ConnectTo(side.far));
  side.far.Post({Receive(10)});
  for (EngineSide* const each : {&stranger, &side.near}) {
    each->card().answers[1] = Always(BeginResult::Done({.status = kRefused, .at_peer = true}));
  }
  stranger.Post({Local(1)});
  EXPECT_EQ(side.far.engine().state(), QueuePairState::kReadyToSend) << "it is connected to another";
  side.near.Post({Local(1)});
  EXPECT_EQ(side.far.engine().state(), QueuePairState::kError);
  EXPECT_EQ(side.far.received(), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(side.far.peer_gone(), 1);
  EXPECT_EQ(side.near.peer_gone(), 1);
}

TEST(EnginePeers, WhoWaitsForAPeerThatEndsOrConnectsElsewhereWaitsNoLonger) {
  for (const bool ends : {true, false}) {
    EngineFabric fabric;
    EngineSide far(fabric, "far");
    EngineSide elsewhere(fabric, "elsewhere");
    EngineSide first(fabric, "first");
    EngineSide second(fabric, "second");
    for (EngineSide* const side : {&first, &second}) {
      ASSERT_TRUE(side->ConnectTo(far));
      side->card().answers[1] = [ends](const EngineTurn& turn) {
        EXPECT_EQ(turn.peer_lost, ends);
        return BeginResult::Done(kTimedOut);
      };
      side->Post({Write(1)});
      EXPECT_EQ(side->card().begun, Contexts{});
    }
    if (ends) {
      far.Flush();
    } else {
      ASSERT_TRUE(far.ConnectTo(elsewhere));
    }
    for (const EngineSide* const side : {&first, &second}) {
      EXPECT_EQ(side->initiated(), (Outcomes{{1, kWritten, kTimedOut}}));
      EXPECT_EQ(side->peer_gone(), ends ? 1 : 0);
    }
  }
}

TEST(EnginePeers, AnIdleConnectionCanBeHeld) {
  EngineFabric fabric;
  EngineSide near(fabric, "near");
  EngineSide far(fabric, "far");
  const auto is_idle = [&near] {
    const bool idle = near.engine().HoldIfIdle();
    if (idle) {
      near.engine().Release();
    }
    return idle;
  };
  EXPECT_FALSE(is_idle()) << "it is not connected";
  ASSERT_TRUE(near.ConnectTo(far));
  EXPECT_FALSE(is_idle()) << "nor is its peer";
  ASSERT_TRUE(far.ConnectTo(near));
  EXPECT_TRUE(is_idle());
  near.Post({Write(1)});
  EXPECT_FALSE(is_idle());
  near.card().End(1);
  EXPECT_TRUE(is_idle());
  far.Flush();
  EXPECT_FALSE(is_idle());
}

// --- the end ---

TEST(EngineEnd, ADisconnectLetsReadsFinishAndBeginsNothing) {
  for (const bool finishes : {true, false}) {
    Connected side({.read_limit = 1, .finishes_reads = finishes});
    side.card.answers[1] = [&](const EngineTurn& turn) {
      EXPECT_TRUE(!turn.resumed || side.near.Refuses(Write(9), ErrorReason::QP_NOT_CONNECTED));
      return DoneWhenResumed(turn);
    };
    side.near.Post({Read(1), Read(2), Receive(10)});
    side.near.engine().Disconnect();
    EXPECT_EQ(side.card.begun, finishes ? (Contexts{1, 1}) : Contexts{1});
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kReadOp, finishes ? kOk : kCancelled}, {2, kReadOp, kCancelled}}));
    EXPECT_EQ(side.near.received(), (Outcomes{{10, kReceived, kCancelled}}));
    EXPECT_EQ(side.far.peer_gone(), 1);
    EXPECT_EQ(side.card.closed, 0);
  }
}

TEST(EngineEnd, ADisconnectReturnsOnceTheConnectUnderWayHas) {
  EngineFabric fabric;
  EngineSide near(fabric, "near");
  std::promise<void> connecting;
  std::promise<void> failed;
  near.card().on_connect = [&] {
    connecting.set_value();
    failed.get_future().wait();
    // So that Disconnect waits by then.
    for (int turn = 0; turn < 1000; ++turn) {
      std::this_thread::yield();
    }
  };
  near.card().on_fail = [&] { failed.set_value(); };
  auto connected = std::async(std::launch::async, [&] { return near.engine().Connect("far"); });
  connecting.get_future().wait();
  near.engine().Disconnect();
  EXPECT_TRUE(FailedWith(connected.get(), ErrorReason::QP_NOT_CONNECTABLE));
}

TEST(EngineEnd, WhoGivesTheQueuePairBackGetsAllRequestsAndLeavesNothing) {
  EngineFabric fabric;
  RecordingListener listener;
  auto* const card = new ScriptedCard(fabric);
  auto engine = std::make_shared<QueuePairEngine>(std::unique_ptr<EngineCard>(card),
                                                  QueuePairEngine::Options{.address = "self", .limits = kRoomyLimits},
                                                  fabric, listener);
  fabric.Add("self", engine);
  const std::weak_ptr<QueuePairEngine> left = engine;
  auto pair = std::make_unique<EngineQueuePair>(std::move(engine));
  ASSERT_TRUE(pair->Connect("self").ok());
  card->answers[2] = Always(BeginResult::Blocked());
  for (WorkRequest& request : std::vector<WorkRequest>{Receive(10), Write(1), Silent(Write(2))}) {
    ASSERT_TRUE(pair->Enqueue(std::move(request)).ok());
  }
  pair->Kick();
  pair.reset();
  listener.Close();
  EXPECT_EQ(listener.outcomes(WorkQueue::kInitiator), (Outcomes{{1, kWritten, kCancelled}, {2, kWritten, kCancelled}}));
  EXPECT_EQ(listener.outcomes(WorkQueue::kReceive), (Outcomes{{10, kReceived, kCancelled}}));
  EXPECT_EQ(listener.peer_gone(), 0) << "it is its own peer";
  EXPECT_EQ(fabric.Find("self"), nullptr);
  EXPECT_TRUE(left.expired());
}

TEST(EngineEnd, NothingIsAcceptedOrReportedAfterShutdown) {
  Connected side;
  side.near.Post({Receive(10)});
  side.near.engine().Shutdown();
  EXPECT_EQ(side.card.closed, 1);
  EXPECT_TRUE(side.near.Refuses(Receive(11), ErrorReason::QP_NOT_CONNECTED));
  side.near.Flush();
  side.near.engine().Run();
  EXPECT_EQ(side.card.failed, 1);
  EXPECT_EQ(side.near.received(), (Outcomes{{10, kReceived, kCancelled}}));
}

}  // namespace
}  // namespace rnicd::provider
