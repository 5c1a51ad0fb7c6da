#include "provider/engine/engine_sends.h"

#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

// A queue whose peer is ready.
struct Sends {
  explicit Sends(const EngineRules& rules = {}, size_t depth = 8) : queue(rules, depth) { queue.Open(); }

  uint64_t Push(WorkRequest work) {
    auto request = std::make_unique<EngineRequest>();
    request->work = std::move(work);
    return queue.Push(std::move(request)).serial;
  }
  // Begins the next one, which the card starts.
  void Start() {
    ASSERT_TRUE(queue.MayBegin(/*reaches_peer=*/true));
    queue.Settle(queue.Begin(turn), BeginResult::Started());
  }
  bool End(uint64_t serial, NtStatus status = kOk) {
    CardOutcome outcome{.status = status};
    return queue.End(serial, outcome);
  }
  // Statuses of all that can be reported.
  std::vector<NtStatus> Reported() {
    std::vector<NtStatus> statuses;
    while (const std::unique_ptr<EngineRequest> request = queue.PopEnded()) {
      statuses.push_back(request->result.status);
      if (statuses.back() != kOk) {
        queue.SetReportedFailure();
      }
    }
    return statuses;
  }

  EngineSends queue;
  EngineTurn turn{.peer_is_local = true};
};
using Statuses = std::vector<NtStatus>;

TEST(EngineSends, RequestsAreAcceptedBetweenConnectAndDisconnect) {
  EngineSends queue({}, 1);
  EXPECT_TRUE(FailedWith(queue.CheckRoom(), ErrorReason::QP_NOT_CONNECTED));
  queue.Open();
  EXPECT_TRUE(queue.CheckRoom().ok());
  queue.Push(std::make_unique<EngineRequest>());
  EXPECT_TRUE(FailedWith(queue.CheckRoom(), ErrorReason::QUEUE_FULL));
  queue.Drain();
  EXPECT_TRUE(FailedWith(queue.CheckRoom(), ErrorReason::QP_NOT_CONNECTED));
  queue.Open();
  EXPECT_TRUE(FailedWith(queue.CheckRoom(), ErrorReason::QP_NOT_CONNECTED)) << "the Connect came too late";
}

TEST(EngineSends, AConnectionMayHaveAReadLimitOfItsOwn) {
  for (const uint32_t limit : {0U, 1U, 3U}) {
    EngineSends queue({.read_limit = 2}, 8);
    queue.Open(limit);
    EngineTurn turn;
    uint32_t begun = 0;
    for (uint64_t context = 1; context <= 4; ++context) {
      auto request = std::make_unique<EngineRequest>();
      request->work = Read(context);
      queue.Push(std::move(request));
    }
    while (queue.MayBegin(/*reaches_peer=*/true)) {
      queue.Settle(queue.Begin(turn), BeginResult::Started());
      ++begun;
    }
    EXPECT_EQ(begun, limit == 0 ? 2 : limit);
  }
}

TEST(EngineSends, OnlyWhatNeedsThePeerWaitsForIt) {
  Sends sends;
  sends.Push(Local(1));
  sends.Push(Write(2));
  EXPECT_TRUE(sends.queue.MayBegin(/*reaches_peer=*/false));
  sends.Start();
  EXPECT_FALSE(sends.queue.MayBegin(/*reaches_peer=*/false));
  EXPECT_TRUE(sends.queue.MayBegin(/*reaches_peer=*/true));
}

TEST(EngineSends, ADrainLetsNothingBeginButWhatIsResumed) {
  Sends sends;
  const uint64_t read = sends.Push(Read(1));
  sends.Push(Write(2));
  sends.Start();
  sends.queue.Drain();
  EXPECT_FALSE(sends.queue.MayBegin(true));
  sends.queue.ResumeAll();
  ASSERT_TRUE(sends.queue.MayBegin(true));
  EXPECT_EQ(sends.queue.Begin(sends.turn).serial, read);
  EXPECT_TRUE(sends.turn.resumed);
  EXPECT_FALSE(sends.queue.MayBegin(true));
}

TEST(EngineSends, AnAbandonedQueueCancelsWhatStartsLater) {
  Sends sends;
  sends.Push(Write(1));
  EngineRequest& begun = sends.queue.Begin(sends.turn);
  sends.queue.Fail(NtStatus::kIoTimeout);
  sends.queue.Abandon();
  EXPECT_EQ(sends.Reported(), Statuses{}) << "it is being begun";
  EXPECT_TRUE(sends.queue.Settle(begun, BeginResult::Started()));
  EXPECT_EQ(sends.Reported(), Statuses{NtStatus::kIoTimeout}) << "the cause";
}

TEST(EngineSends, AFailureCancelsWhatWaitsInOrderBehindWhatHasStarted) {
  Sends sends;
  const uint64_t first = sends.Push(Write(1));
  sends.Push(Write(2));
  sends.Start();
  sends.queue.Fail(kCancelled);
  EXPECT_FALSE(sends.queue.MayBegin(true));
  EXPECT_EQ(sends.Reported(), Statuses{});
  EXPECT_TRUE(sends.End(first));
  EXPECT_FALSE(sends.End(first)) << "the first result counts";
  EXPECT_EQ(sends.Reported(), (Statuses{kOk, kCancelled}));
  EXPECT_TRUE(sends.queue.empty());
}

TEST(EngineSends, AnAnswerEndsNothingButTheRequestThatAwaitsIt) {
  Sends sends({.awaits_invalidations = true});
  EXPECT_FALSE(sends.queue.Answer(true));
  const uint64_t first = sends.Push(Send(1, {}, {.invalidate = RemoteToken{7}}));
  sends.Start();
  EXPECT_TRUE(sends.End(first));
  EXPECT_EQ(sends.Reported(), Statuses{});
  EXPECT_TRUE(sends.queue.Answer(true));
  EXPECT_FALSE(sends.queue.Answer(true));
  EXPECT_EQ(sends.Reported(), Statuses{kOk});
  sends.queue.EndAnswers();
  const uint64_t second = sends.Push(Send(2, {}, {.invalidate = RemoteToken{7}}));
  sends.Start();
  EXPECT_TRUE(sends.End(second));
  EXPECT_EQ(sends.Reported(), Statuses{kOk}) << "the peer has ended: no answer is awaited";
}

}  // namespace
}  // namespace rnicd::provider
