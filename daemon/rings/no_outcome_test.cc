// Posts without an outcome: what would be refused completes, or fails the queue pair.

#include "daemon/rings/ring_fixture_test.h"

namespace rnicd::rings {
namespace {

using ring::Opcode;
using ring::Outcome;
using ring::Submission;

class NoOutcomeTest : public RingTest {
 protected:
  void Post(QueuePairId pair, const std::vector<WorkRequest>& chain) {
    client_.flags = ring::kFlagNoOutcome;
    client_.SubmitChain(pair, chain);
    client_.flags = 0;
  }
  // Returns when everything before has been executed.
  Outcome AfterAll() {
    client_.Submit({.opcode = Opcode::kNop});
    return client_.Next();
  }
  std::vector<Completion> Results() {
    AfterAll();
    return *owner_.session->Begin()->queues().GetResults(owner_.queue, 64);
  }
  static WorkRequest Empty(uint64_t context, size_t sges = 0) {
    WorkRequest request = core::Write(Sges(sges), 0, RemoteToken{});
    request.request_context = context;
    return request;
  }
  // It has more SGEs than any adapter allows.
  static WorkRequest Refused(uint64_t context) { return Empty(context, 200); }
};

TEST_F(NoOutcomeTest, APostHasNone) {
  const QueuePairId pair = ConnectedPair();
  Post(pair, {Empty(1), Empty(2)});
  EXPECT_EQ(AfterAll().opcode, Opcode::kNop);
  const std::vector<Completion> results = Results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].request_context, 2U);
  EXPECT_EQ(results[1].queue_pair, pair);
  EXPECT_EQ(results[1].request_number, 2U);
}

TEST_F(NoOutcomeTest, ARefusalCompletesInItsPlaceAndCancelsWhatIsBehindIt) {
  const QueuePairId pair = ConnectedPair();
  Post(pair, {Empty(1), Refused(2), Empty(3)});
  Post(pair, {Empty(4)});
  const std::vector<Completion> results = Results();
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].request_context, 2U);
  EXPECT_EQ(results[1].reason, ErrorReason::SGE_COUNT);
  EXPECT_EQ(results[1].type, OperationType::kWrite);
  EXPECT_EQ(results[2].status, NtStatus::kCancelled);
  EXPECT_EQ(results[3].request_context, 4U);
  EXPECT_EQ(results[3].status, NtStatus::kCancelled);
}

TEST_F(NoOutcomeTest, WhatIsPostedBeforeARefusedReceiveIsExecuted) {
  const QueuePairId pair = ConnectedPair();
  Post(pair, {Empty(1), core::Receive(Sges(200), 2), Empty(3)});
  const std::vector<Completion> results = Results();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].reason, ErrorReason::SGE_COUNT);
  EXPECT_EQ(results[1].type, OperationType::kReceive);
  EXPECT_EQ(results[2].status, NtStatus::kCancelled);
}

// One error for each queue at most, however many are refused.
TEST_F(NoOutcomeTest, WhatIsBehindARefusedReceiveIsCancelled) {
  const QueuePairId pair = ConnectedPair();
  Post(pair, {core::Receive(Sges(200), 1), core::Receive(Sges(200), 2), core::Receive({}, 3), Refused(4)});
  const std::vector<Completion> results = Results();
  ASSERT_EQ(results.size(), 4U);
  for (const Completion& result : results) {
    EXPECT_EQ(result.ok() || result.status == NtStatus::kCancelled, result.request_context != 1);
  }
}

TEST_F(NoOutcomeTest, AnEntryThatCannotBeDecodedFailsItsQueuePair) {
  for (const Submission& entry : {Submission{.count = 0}, Submission{.count = 1}, Submission{.payload_bytes = 4},
                                  Submission{.reserved = {1, 0, 0}}}) {
    const QueuePairId pair = ConnectedPair();
    Submission post = entry;
    post.opcode = Opcode::kPost;
    post.flags = ring::kFlagNoOutcome;
    post.object = pair.value;
    client_.Submit(post);
    AfterAll();
    EXPECT_EQ(owner_.State(pair), provider::QueuePairState::kError);
  }
  EXPECT_EQ(world_.Counts().refused, 4U);
}

TEST_F(NoOutcomeTest, AQueuePairThatIsGoneReportsNothing) {
  Post(QueuePairId{99}, {Empty(1)});
  EXPECT_EQ(AfterAll().status, 0U);
  EXPECT_EQ(world_.Counts().refused, 1U);
}

TEST_F(NoOutcomeTest, OtherFlagsAndOpcodesAreRefusedInAnOutcome) {
  for (const Submission& entry :
       {Submission{.opcode = Opcode::kNop, .flags = ring::kFlagNoOutcome},
        Submission{.opcode = Opcode::kDeregisterMr, .flags = ring::kFlagNoOutcome},
        Submission{.opcode = Opcode::kPost, .flags = 2}, Submission{.opcode = Opcode::kPost, .flags = 3}}) {
    client_.Submit(entry);
    EXPECT_EQ(client_.Next().reason, NumberOf(ErrorReason::FIELD_OUT_OF_RANGE));
  }
}

TEST_F(NoOutcomeTest, RefusalsThatOverrunTheCompletionQueueEndIt) {
  const CompletionQueueId narrow = owner_.Queue(2, /*context=*/5);
  core::CreateQpArguments arguments = owner_.PairArguments();
  arguments.receive_queue = arguments.initiator_queue = narrow;
  const QueuePairId pair = owner_.Pair(arguments);
  Post(pair, {Empty(1), Empty(2), Empty(3)});
  AfterAll();
  EXPECT_TRUE(FailedWith(owner_.session->Begin()->queues().GetResults(narrow, 8).status(), ErrorReason::CQ_OVERRUN));
}

}  // namespace
}  // namespace rnicd::rings
