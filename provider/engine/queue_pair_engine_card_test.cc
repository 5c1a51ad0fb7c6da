// The engine's own part of what a card does not do: the rendezvous of a SendAndInvalidate with its receiver, and a card
// that keeps what it has. One thread, and a scripted card.

#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

constexpr EngineRules kAwaits{.awaits_invalidations = true};
constexpr RemoteToken kToken{7};

WorkRequest SendAndInvalidate(uint64_t context) { return Send(context, {}, {.invalidate = kToken}); }

// The receiver's card has read the token, and invalidated it or not.
Completion AnswerOf(EngineSide& receiver, bool invalidated) {
  Completion receive{.type = OperationType::kReceive};
  receiver.engine().Invalidated(kToken, invalidated, receive);
  return receive;
}

// --- the rendezvous ---

TEST(EngineInvalidation, ASendIsCompleteWhenTheCardIsDoneAndThePeerHasAnswered) {
  for (const bool card_first : {true, false}) {
    Connected side(kAwaits);
    side.near.Post({SendAndInvalidate(1), Write(2)});
    const auto answer = [&side] { AnswerOf(side.far, /*invalidated=*/true); };
    const auto end = [&side] { EXPECT_TRUE(side.card.End(1)); };
    card_first ? end() : answer();
    EXPECT_EQ(side.near.initiated(), Outcomes{});
    EXPECT_EQ(side.card.begun, Contexts{1}) << "what is behind it waits for both";
    card_first ? answer() : end();
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, kOk}}));
    EXPECT_EQ(side.card.begun, (Contexts{1, 2}));
  }
}

TEST(EngineInvalidation, APeerMayAnswerBeforeTheCardHasSaidThatItStarted) {
  for (const bool invalidated : {true, false}) {
    Connected side(kAwaits);
    side.card.answers[1] = [&](const EngineTurn& /*turn*/) {
      AnswerOf(side.far, invalidated);
      return BeginResult::Started();
    };
    side.near.Post({SendAndInvalidate(1)});
    EXPECT_EQ(side.card.End(1), invalidated) << "a refusal has ended it";
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, invalidated ? kOk : NtStatus::kRemoteResources}}));
  }
}

TEST(EngineInvalidation, ATokenThatIsNotInvalidatedFailsTheSendAndTheReceive) {
  for (const bool card_first : {true, false}) {
    Connected side(kAwaits);
    side.near.Post({SendAndInvalidate(1), Write(2)});
    EXPECT_TRUE(!card_first || side.card.End(1));
    EXPECT_EQ(AnswerOf(side.far, /*invalidated=*/false).status, NtStatus::kInvalidDeviceRequest);
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, NtStatus::kRemoteResources}, {2, kWritten, kCancelled}}));
  }
}

TEST(EngineInvalidation, AReceiveSaysWhichTokenWasInvalidated) {
  Connected side;
  const Completion receive = AnswerOf(side.far, /*invalidated=*/true);
  EXPECT_EQ(receive.type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(receive.invalidated, kToken);
  EXPECT_EQ(receive.status, kOk);
}

TEST(EngineInvalidation, APeerThatEndsWithoutAnAnswerLeavesATimeout) {
  for (const bool card_first : {true, false}) {
    Connected side(kAwaits);
    side.near.Post({SendAndInvalidate(1), Write(2)});
    EXPECT_TRUE(!card_first || side.card.End(1));
    side.far.Flush();
    EXPECT_TRUE(card_first || side.card.End(1));
    EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, NtStatus::kIoTimeout}, {2, kWritten, kCancelled}}));
    EXPECT_EQ(side.near.peer_gone(), 1);
  }
}

TEST(EngineInvalidation, ABlockedSendIsNotAwaitedUntilItBegins) {
  Connected side(kAwaits);
  side.card.answers[1] = Always(BeginResult::Blocked());
  side.near.Post({SendAndInvalidate(1)});
  AnswerOf(side.far, /*invalidated=*/false);
  EXPECT_EQ(side.near.initiated(), Outcomes{});
  side.card.answers.clear();
  side.near.engine().Run();
  EXPECT_TRUE(side.card.End(1));
  EXPECT_EQ(side.near.initiated(), Outcomes{});
  AnswerOf(side.far, /*invalidated=*/true);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, kOk}}));
}

TEST(EngineInvalidation, NothingIsAwaitedWhereTheCardSeesToIt) {
  Connected side;
  side.near.Post({SendAndInvalidate(1), Write(2)});
  EXPECT_EQ(side.card.begun, (Contexts{1, 2}));
  EXPECT_TRUE(side.card.End(1));
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kSent, kOk}}));
}

// --- outcomes ---

TEST(EngineOutcome, ALostPeerIsReportedAndARefusalByThePeerFailsIt) {
  for (const bool at_peer : {true, false}) {
    Connected side;
    side.near.Post({Write(1)});
    side.card.End(1, {.status = at_peer ? NtStatus::kAccessViolation : NtStatus::kIoTimeout,
                      .at_peer = at_peer,
                      .peer_lost = !at_peer});
    EXPECT_EQ(side.near.peer_gone(), 1);
    EXPECT_EQ(side.near.engine().state(), QueuePairState::kError);
    EXPECT_EQ(side.far.engine().state(), at_peer ? QueuePairState::kError : QueuePairState::kReadyToSend);
    EXPECT_EQ(side.near.completions().front().at_peer, at_peer);
  }
}

TEST(EngineOutcome, WhatACardKeepsIsCancelledWhenItsTimeIsOver) {
  const EngineRules rows[] = {{}, {.card_timeout = std::chrono::hours(1)}, {.card_timeout = std::chrono::hours(0)}};
  for (const EngineRules& rules : rows) {
    Connected side(rules);
    side.card.abandons = false;
    side.near.Post({Write(1), Receive(10)});
    EXPECT_FALSE(side.near.engine().AbandonIfLate()) << "it has not failed";
    side.near.Flush();
    const bool late = rules.card_timeout == std::chrono::hours(0);
    EXPECT_EQ(side.near.engine().AbandonIfLate(), late);
    EXPECT_EQ(side.near.initiated(), late ? (Outcomes{{1, kWritten, kCancelled}}) : Outcomes{});
    EXPECT_EQ(side.near.received(), late ? (Outcomes{{10, kReceived, kCancelled}}) : Outcomes{});
    EXPECT_FALSE(side.near.engine().AbandonIfLate()) << "once is enough";
  }
}

}  // namespace
}  // namespace rnicd::provider
