// Which request begins when, and in which order requests are reported. One thread, and a scripted card. What holds for
// the queue pairs of every card is tested in tests/provider_contract.

#include "provider/engine/queue_pair_engine.h"

#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

// --- order ---

TEST(EngineOrder, RequestsBeginWithTheNextRunInTheOrderOfPosting) {
  Connected side;
  ASSERT_TRUE(side.near.engine().Enqueue(Write(1)).ok());
  ASSERT_TRUE(side.near.engine().Enqueue(Local(2)).ok());
  EXPECT_EQ(side.card.begun, Contexts{});
  side.near.Post({Send(3)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3}));
}

TEST(EngineOrder, WhateverEndsFirstTheOldestIsReportedFirst) {
  Connected side;
  side.near.Post({Write(1), Read(2), Send(3)});
  side.card.End(3);
  side.card.End(2);
  EXPECT_EQ(side.near.initiated(), Outcomes{});
  side.card.End(1);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kReadOp, kOk}, {3, kSent, kOk}}));
}

TEST(EngineOrder, ACardIsToldWhetherARequestIsTheFirst) {
  Connected side;
  std::vector<bool> first;
  for (const uint64_t context : {1, 2, 3}) {
    side.card.answers[context] = [&first](const EngineTurn& turn) {
      first.push_back(turn.is_first);
      return BeginResult::Started();
    };
  }
  side.near.Post({Write(1), Write(2)});
  side.card.End(2);
  side.card.End(1);
  side.near.Post({Write(3)});
  EXPECT_EQ(first, (std::vector<bool>{true, false, true}));
}

// --- waiting ---

TEST(EngineWaiting, ARequestBeginsWhenEverythingItWaitsForHasEnded) {
  // Everything that has begun, after this request has ended; at first, none.
  struct Step {
    uint64_t ended;
    Contexts begun;
  };
  const EngineRules alone{.local_requests_alone = true};
  const struct {
    const char* claim;
    EngineRules rules;
    std::vector<WorkRequest> requests;
    std::vector<Step> steps;
  } kRows[] = {
      {"nothing waits where the card sees to it",
       {},
       {Read(1), Fenced(Write(2)), Local(3), Write(4)},
       {{0, {1, 2, 3, 4}}}},
      {"a fence waits for all reads, and what is behind it for the fence",
       {.read_limit = 8},
       {Read(1), Read(2), Fenced(Write(3)), Write(4)},
       {{0, {1, 2}}, {2, {1, 2}}, {1, {1, 2, 3, 4}}}},
      {"a fence waits for nothing but reads",
       {.read_limit = 8},
       {Write(1), Send(2), Fenced(Read(3))},
       {{0, {1, 2, 3}}}},
      {"only so many reads are under way",
       {.read_limit = 2},
       {Read(1), Write(2), Read(3), Read(4), Write(5)},
       {{0, {1, 2, 3}}, {2, {1, 2, 3}}, {3, {1, 2, 3, 4, 5}}}},
      {"a local request waits for all before it, and all behind it wait",
       alone,
       {Read(1), Write(2), Local(3), Write(4)},
       {{0, {1, 2}}, {1, {1, 2}}, {2, {1, 2, 3}}, {3, {1, 2, 3, 4}}}},
      {"so does what is behind a read that invalidates",
       alone,
       {ReadAndInvalidate(1, {}), Write(2)},
       {{0, {1}}, {1, {1, 2}}}},
      {"but not if the card sees to it", {}, {ReadAndInvalidate(1, {}), Write(2)}, {{0, {1, 2}}}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.claim);
    Connected side(row.rules);
    side.near.Post(row.requests);
    for (const Step& step : row.steps) {
      EXPECT_TRUE(step.ended == 0 || side.card.End(step.ended));
      EXPECT_EQ(side.card.begun, step.begun);
    }
  }
}

TEST(EngineWaiting, WhatNeedsThePeerWaitsForItWithAllThatIsBehind) {
  EngineFabric fabric;
  EngineSide near(fabric, "near");
  EngineSide far(fabric, "far");
  ASSERT_TRUE(near.ConnectTo(far));
  near.Post({Local(1), Write(2), Local(3)});
  EXPECT_EQ(near.card().begun, Contexts{1});
  EngineSide stranger(fabric, "stranger");
  ASSERT_TRUE(stranger.ConnectTo(near));
  EXPECT_EQ(near.card().begun, Contexts{1}) << "that is not its peer";
  ASSERT_TRUE(far.ConnectTo(near));
  EXPECT_EQ(near.card().begun, (Contexts{1, 2, 3}));
}

TEST(EngineWaiting, WhoIsBehindARequestThatHoldsBackWaits) {
  Connected side;
  side.card.answers[1] = Always(BeginResult::Started(/*holds_back=*/true));
  side.near.Post({Write(1), Write(2)});
  EXPECT_EQ(side.card.begun, Contexts{1});
  side.card.End(1);
  EXPECT_EQ(side.card.begun, (Contexts{1, 2}));
}

TEST(EngineWaiting, ABlockedRequestBeginsAgainWithEveryRunAndHoldsTheRestUp) {
  Connected side;
  side.card.answers[1] = Always(BeginResult::Blocked());
  side.near.Post({Send(1), Write(2)});
  side.near.engine().Run();
  EXPECT_EQ(side.card.begun, (Contexts{1, 1}));
  side.card.answers.erase(1);
  side.near.engine().Run();
  EXPECT_EQ(side.card.begun, (Contexts{1, 1, 1, 2}));
}

TEST(EngineWaiting, ASendThatFoundNoReceiveBeginsAgainWhenThereIsOne) {
  Connected side;
  side.card.answers[1] = Always(BeginResult::Blocked());
  side.near.Post({Send(1)});
  ASSERT_TRUE(side.far.engine().EnterPeer(side.near.engine().address()));
  EXPECT_EQ(side.far.engine().TakeReceive(), nullptr);
  side.far.engine().Release();
  side.far.Post({Receive(10)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 1}));
  side.far.Post({Receive(11)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 1})) << "it has not looked for another";
}

// --- resumed requests ---

TEST(EngineResuming, AResumedRequestBeginsOnceMoreWhateverItsPlace) {
  Connected side;
  side.card.answers[1] = DoneWhenResumed;
  side.card.answers[2] = DoneWhenResumed;
  side.near.Post({Read(1), Read(2), Write(3)});
  side.card.Resume(2);
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3, 2}));
  EXPECT_EQ(side.near.initiated(), Outcomes{});
  side.card.Resume(1);
  side.card.Resume(1);
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3, 2, 1}));
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kReadOp, kOk}, {2, kReadOp, kOk}}));
}

TEST(EngineResuming, ACardMayResumeARequestBeforeItHasAnsweredThatItStarted) {
  for (const BeginResult& answer : {BeginResult::Started(), BeginResult::Blocked()}) {
    Connected side;
    side.card.answers[1] = [&](const EngineTurn& /*turn*/) {
      if (side.card.begun.size() > 1) {
        return BeginResult::Done(kOk);
      }
      side.card.Resume(1);
      return answer;
    };
    side.near.Post({Read(1)});
    EXPECT_EQ(side.card.begun, (Contexts{1, 1}));
    side.near.Post({Write(2)});
    EXPECT_EQ(side.card.begun, (Contexts{1, 1, 2}));
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kReadOp, kOk}}));
  }
}

TEST(EngineResuming, ARequestThatEndsBeforeItsSecondTurnHasNone) {
  Connected side;
  side.card.answers[2] = [&](const EngineTurn& /*turn*/) {
    side.card.Resume(1);
    EXPECT_TRUE(side.card.End(1));
    return BeginResult::Started();
  };
  side.near.Post({Read(1), Write(2), Write(3)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3}));
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kReadOp, kOk}}));
}

// --- long turns, and local requests that begin together ---

TEST(EngineTurns, ARunnerThatMovedItsBytesLeavesTheRestToAnotherThread) {
  Connected side({.bytes_per_turn = 10});
  side.card.default_answer = BeginResult::Done(kOk);
  side.card.bytes = 5;
  side.near.Post({Write(1), Write(2), Write(3), Write(4)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 2}));
  side.near.Post({Write(5)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 2})) << "that thread is the runner";
  ASSERT_EQ(side.card.later.size(), 1u);
  side.near.RunLater();
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3, 4})) << "it has as long a turn";
  side.near.Flush();
  EXPECT_EQ(side.near.initiated().size(), 4u);
  side.near.RunLater();
  EXPECT_EQ(side.near.initiated().back(), (Outcome{5, kWritten, kCancelled}));
}

TEST(EngineTurns, LocalRequestsThatFollowEachOtherBeginTogetherUpToTheLimit) {
  Connected side({.local_requests_alone = true, .local_requests_together = 2});
  side.card.default_answer = BeginResult::Done(kOk);
  side.near.Post({Local(1), Local(2), Local(3), Write(4), Local(5)});
  EXPECT_EQ(side.card.together, (std::vector<size_t>{2, 1, 1}));
  EXPECT_EQ(side.card.begun, (Contexts{1, 2, 3, 4, 5}));
  EXPECT_EQ(side.near.initiated().size(), 5u);
}

TEST(EngineTurns, OfThoseThatBeganTogetherTheRestComesAfterTheFirstThatIsNotDone) {
  for (const bool blocked : {true, false}) {
    Connected side({.local_requests_alone = true, .local_requests_together = 4});
    side.card.default_answer = BeginResult::Done(kOk);
    side.card.answers[2] =
        Always(blocked ? BeginResult::Blocked() : BeginResult::Done(NtStatus::kInvalidDeviceRequest));
    side.near.Post({Local(1), Local(2), Local(3)});
    EXPECT_EQ(side.near.initiated().size(), blocked ? 1u : 3u);
    EXPECT_EQ(side.card.begun, blocked ? (Contexts{1, 2, 2}) : (Contexts{1, 2}));
    side.card.answers.clear();
    side.near.engine().Run();
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kBound, kOk},
                                               {2, kBound, blocked ? kOk : NtStatus::kInvalidDeviceRequest},
                                               {3, kBound, blocked ? kOk : kCancelled}}));
  }
}

// --- room ---

TEST(EngineRoom, AQueueIsFullUntilARequestHasBeenReported) {
  Connected side({}, {.receive_depth = 2, .initiator_depth = 2});
  side.near.Post({Silent(Write(1)), Silent(Write(2)), Receive(10), Receive(11)});
  side.card.End(2);
  side.card.EndReceive(11);
  EXPECT_TRUE(side.near.Refuses(Write(3), ErrorReason::QUEUE_FULL)) << "it ended, but behind another";
  EXPECT_TRUE(side.near.Refuses(Receive(12), ErrorReason::QUEUE_FULL));
  side.card.End(1);
  side.card.EndReceive(10);
  EXPECT_EQ(side.near.received(), (Outcomes{{10, kReceived, kOk}, {11, kReceived, kOk}})) << "in their order";
  side.near.Post({Write(3), Write(4), Receive(12), Receive(13)});
  EXPECT_TRUE(side.near.Refuses(Write(5), ErrorReason::QUEUE_FULL));
  EXPECT_TRUE(side.near.Refuses(Receive(14), ErrorReason::QUEUE_FULL));
}

TEST(EngineRoom, WhatTheCardRefusesTakesNoRoomAndNoToken) {
  Connected side({}, {.receive_depth = 1, .initiator_depth = 1});
  side.card.refusal = MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  EXPECT_TRUE(side.near.Refuses(Local(1), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(side.near.Refuses(Receive(10), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  side.card.refusal = absl::OkStatus();
  side.card.receive_refusal = MakeError(ErrorReason::DEVICE_FAILED);
  EXPECT_TRUE(side.near.Refuses(Receive(11), ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(side.card.issued, 0u);
  side.card.receive_refusal = absl::OkStatus();
  side.near.Post({Local(2), Receive(12)});
  EXPECT_TRUE(side.near.Refuses(Local(3), ErrorReason::QUEUE_FULL));
  EXPECT_EQ(side.card.issued, 1u);
  side.card.EndReceive(12);
  EXPECT_EQ(side.near.received(), (Outcomes{{12, kReceived, kOk}}));
}

}  // namespace
}  // namespace rnicd::provider
