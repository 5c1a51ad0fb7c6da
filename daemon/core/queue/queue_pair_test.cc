#include "daemon/core/queue/queue_pair.h"

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

using provider::QueuePairState;

class QueuePairTest : public ::testing::Test, protected Connected {
 protected:
  // A pair with its own queue of `depth` completions, connected to itself.
  struct Narrow {
    CompletionQueueId queue;
    QueuePairId pair;
  };
  Narrow NarrowPair(uint32_t depth) {
    Narrow narrow{.queue = owner.Queue(depth, /*context=*/5)};
    CreateQpArguments arguments = owner.PairArguments();
    arguments.receive_queue = arguments.initiator_queue = narrow.queue;
    narrow.pair = owner.Pair(arguments);
    EXPECT_TRUE(owner.session->Begin()->pairs().Connect(narrow.pair, owner.Address(narrow.pair)).ok());
    return narrow;
  }
  static WorkRequest NoBytes() { return Write({}, 0, RemoteToken{}); }
};

TEST_F(QueuePairTest, GoesFromInitToReadyToError) {
  const QueuePairId fresh = owner.Pair();
  EXPECT_EQ(owner.State(fresh), QueuePairState::kInit);
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(fresh, peer.Address(peer_pair)).ok());
  EXPECT_EQ(owner.State(fresh), QueuePairState::kReadyToSend);
  ASSERT_TRUE(owner.session->Begin()->pairs().Disconnect(fresh).ok());
  EXPECT_EQ(owner.State(fresh), QueuePairState::kError);
}

TEST_F(QueuePairTest, ItsAddressIsItsOwnAndStaysTheSame) {
  const QueuePairId other = owner.Pair();
  const std::string address = owner.Address(other);
  EXPECT_NE(address, owner.Address(pair));
  EXPECT_LE(address.size(), 64u);
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(other, address).ok()) << "a pair may connect to itself";
  EXPECT_EQ(owner.Address(other), address);
}

TEST_F(QueuePairTest, ConnectsOnce) {
  const std::string address = peer.Address(peer_pair);
  EXPECT_THAT(owner.session->Begin()->pairs().Connect(pair, address),
              FailsAt(ErrorReason::QP_NOT_CONNECTABLE, "qp_id"));
  const QueuePairId flushed = owner.Pair();
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(flushed).ok());
  EXPECT_THAT(owner.session->Begin()->pairs().Connect(flushed, address),
              FailsAt(ErrorReason::QP_NOT_CONNECTABLE, "qp_id"));
}

TEST_F(QueuePairTest, AnAddressOfNobodyIsRefusedAndLeavesThePairConnectable) {
  const QueuePairId fresh = owner.Pair();
  const QueuePairId gone = peer.Pair();
  const std::string former = peer.Address(gone);
  ASSERT_TRUE(peer.ClosePair(gone).ok());
  for (const std::string& address : {std::string(), std::string(8, '\1'), std::string(64, 'x'), former}) {
    EXPECT_THAT(owner.session->Begin()->pairs().Connect(fresh, address),
                FailsAt(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address"));
  }
  EXPECT_EQ(owner.State(fresh), QueuePairState::kInit);
  EXPECT_TRUE(owner.session->Begin()->pairs().Connect(fresh, owner.Address(fresh)).ok());
}

TEST_F(QueuePairTest, DisconnectingNeedsAConnection) {
  EXPECT_THAT(owner.session->Begin()->pairs().Disconnect(owner.Pair()),
              FailsAt(ErrorReason::QP_NOT_CONNECTED, "qp_id"));
  ASSERT_TRUE(owner.session->Begin()->pairs().Disconnect(pair).ok());
  EXPECT_THAT(owner.session->Begin()->pairs().Disconnect(pair), FailsAt(ErrorReason::QP_NOT_CONNECTED, "qp_id"));
}

TEST_F(QueuePairTest, CompletionsCarryTheContextsOfTheirPairAndRequest) {
  ASSERT_TRUE(owner.session->Begin()->queues().Arm(owner.queue, CqNotifyType::kSolicited).ok());
  owner.MustPost(pair, {Receive({}, 31)});
  peer.MustPost(peer_pair, {Send({}, kOpFlagSolicit, 32)});
  const auto received = owner.Results();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].qp_context, 71u);
  EXPECT_EQ(received[0].request_context, 31u);
  EXPECT_EQ(received[0].type, OperationType::kReceive);
  const auto event = owner.session->events().Pop();
  ASSERT_TRUE(event.has_value()) << "the completion of a solicited send wakes its receiver";
  EXPECT_EQ(std::get<CqNotified>(event->body).queue, owner.queue);
  const auto sent = peer.Results();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].qp_context, 72u);
  EXPECT_EQ(sent[0].request_context, 32u);
}

TEST_F(QueuePairTest, EachQueueReportsToItsOwnCompletionQueue) {
  CreateQpArguments arguments = owner.PairArguments();
  arguments.receive_queue = owner.Queue();
  const QueuePairId split = owner.Pair(arguments);
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(split, owner.Address(split)).ok());
  owner.MustPost(split, {Receive({}, 1), Send({}, 0, 2)});
  const auto received = owner.Results(arguments.receive_queue);
  const auto sent = owner.Results();
  ASSERT_TRUE(received.size() == 1 && sent.size() == 1);
  EXPECT_EQ(received[0].request_context, 1u);
  EXPECT_EQ(sent[0].request_context, 2u);
}

TEST_F(QueuePairTest, TheFlushOfAPairCompletesAllThatWaitsSilentOnesIncluded) {
  owner.MustPost(pair, {Send({}, 0, 1), Send({}, kOpFlagSilentSuccess, 2), Receive({}, 3)});
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>(3, NtStatus::kCancelled));
}

TEST_F(QueuePairTest, ThePeerIsNotifiedOnceAndKeepsItsReceives) {
  peer.MustPost(peer_pair, {Receive()});
  ASSERT_TRUE(owner.session->Begin()->pairs().Disconnect(pair).ok());
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  const auto reported = peer.NextEvent<QpDisconnected>();
  EXPECT_EQ(reported.queue_pair, peer_pair);
  EXPECT_EQ(reported.context, 72u);
  EXPECT_TRUE(peer.HasNoEvent());
  EXPECT_TRUE(owner.HasNoEvent()) << "the side that disconnects gets no event";
  EXPECT_TRUE(peer.Results().empty());
  ASSERT_TRUE(peer.session->Begin()->pairs().Flush(peer_pair).ok());
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kCancelled});
}

TEST_F(QueuePairTest, ARequestToAPeerThatIsGoneTimesOut) {
  ASSERT_TRUE(peer.ClosePair(peer_pair).ok());
  owner.MustPost(pair, {Send(), Send()});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kIoTimeout, NtStatus::kCancelled}));
}

TEST_F(QueuePairTest, ClosingWithdrawsTheNewsOfThePeer) {
  ASSERT_TRUE(peer.ClosePair(peer_pair).ok());
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_TRUE(owner.HasNoEvent());
}

TEST_F(QueuePairTest, ClosingFlushesAndTheCompletionsStayOnTheirQueue) {
  owner.MustPost(pair, {Send({}, 0, 1), Receive({}, 2)});
  ASSERT_TRUE(owner.ClosePair(pair).ok());
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>(2, NtStatus::kCancelled));
}

TEST_F(QueuePairTest, AFailureEndsThePairAndThePeer) {
  peer.MustPost(peer_pair, {Receive()});
  owner.MustPost(pair, {Write({InlineSge("x")}, kRegionBase, {0x1234}, kOpFlagInline), Send({}, kOpFlagSilentSuccess)});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kAccessViolation, NtStatus::kCancelled}));
  EXPECT_EQ(owner.State(pair), QueuePairState::kError);
  EXPECT_EQ(peer.Statuses(), std::vector<NtStatus>{NtStatus::kCancelled});
  EXPECT_EQ(peer.State(peer_pair), QueuePairState::kError);
  EXPECT_EQ(peer.NextEvent<QpDisconnected>().queue_pair, peer_pair);
  EXPECT_TRUE(peer.HasNoEvent());
}

TEST_F(QueuePairTest, AnOverrunEndsThePairsOfTheQueueAndNoOthers) {
  const Narrow narrow = NarrowPair(2);
  owner.MustPost(narrow.pair, {NoBytes(), NoBytes()});
  EXPECT_EQ(owner.State(narrow.pair), QueuePairState::kReadyToSend) << "full is no overrun";
  ASSERT_TRUE(owner.session->Begin()->queues().Arm(narrow.queue, CqNotifyType::kErrors).ok());
  owner.MustPost(narrow.pair, {NoBytes()});
  EXPECT_TRUE(Eventually([&] { return owner.State(narrow.pair) == QueuePairState::kError; }));
  const auto notified = owner.NextEvent<CqNotified>();
  EXPECT_EQ(notified.status, NtStatus::kBufferOverflow);
  EXPECT_EQ(notified.queue, narrow.queue);
  EXPECT_EQ(notified.context, 5u);
  EXPECT_THAT(owner.session->Begin()->queues().GetResults(narrow.queue, 1).status(),
              FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_EQ(owner.State(pair), QueuePairState::kReadyToSend);
}

TEST_F(QueuePairTest, AnOverrunEndsTheConnectionsOfTheQueue) {
  CreateQpArguments arguments = owner.PairArguments();
  arguments.receive_queue = arguments.initiator_queue = owner.Queue(1);
  const QueuePairId narrow = owner.Pair(arguments);
  const QueuePairId other = peer.Pair();
  ConnectPairs(owner, narrow, peer, other);
  owner.MustPost(narrow, {NoBytes(), NoBytes()});
  std::optional<Event> event;
  ASSERT_TRUE(Eventually([&] { return (event = peer.session->events().Pop()).has_value(); }));
  EXPECT_EQ(std::get<QpDisconnected>(event->body).queue_pair, other);
}

TEST_F(QueuePairTest, OnADeadQueueNothingIsPostedAndNoPairIsMade) {
  const Narrow narrow = NarrowPair(1);
  owner.MustPost(narrow.pair, {NoBytes(), NoBytes()});
  EXPECT_THAT(owner.Post(narrow.pair, {Receive()}).failure, FailsAt(ErrorReason::QP_NOT_CONNECTED, "requests[0]"));
  const std::string held = world.Held();
  for (const bool receive : {true, false}) {
    CreateQpArguments arguments = owner.PairArguments();
    (receive ? arguments.receive_queue : arguments.initiator_queue) = narrow.queue;
    EXPECT_THAT(owner.session->Begin()->pairs().Create(arguments).status(),
                FailsAt(ErrorReason::CQ_OVERRUN, receive ? "receive_cq_id" : "initiator_cq_id"));
  }
  EXPECT_EQ(world.Held(), held);
}

TEST_F(QueuePairTest, APairOfWhichOneQueueIsDeadReportsNothingToTheOther) {
  CreateQpArguments arguments = owner.PairArguments();
  arguments.initiator_queue = owner.Queue(1);
  const QueuePairId split = owner.Pair(arguments);
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(split, owner.Address(split)).ok());
  owner.MustPost(split, {Receive(), NoBytes(), NoBytes()});
  ASSERT_TRUE(owner.ClosePair(split).ok());
  EXPECT_TRUE(owner.Results().empty());
}

TEST_F(QueuePairTest, TheLimitsOfTheAdapterAreCheckedBeforeAnythingIsCharged) {
  const NdkAdapterInfo info = *owner.session->Begin()->adapters().QueryInfo(owner.adapter);
  using Limits = provider::QueuePairLimits;
  const struct {
    uint32_t Limits::* limit;
    uint32_t most;
    const char* field;
  } rows[] = {
      {&Limits::receive_depth, info.max_receive_queue_depth, "receive_queue_depth"},
      {&Limits::initiator_depth, info.max_initiator_queue_depth, "initiator_queue_depth"},
      {&Limits::receive_entries, info.max_receive_request_sge, "max_receive_request_sge"},
      {&Limits::initiator_entries, info.max_initiator_request_sge, "max_initiator_request_sge"},
      {&Limits::inline_bytes, info.max_inline_data_size, "inline_data_size"},
  };
  const std::string held = world.Held();
  for (const auto& row : rows) {
    for (const uint32_t above : {row.most + 1, UINT32_MAX}) {
      CreateQpArguments arguments = owner.PairArguments();
      arguments.limits.*row.limit = above;
      EXPECT_THAT(owner.session->Begin()->pairs().Create(arguments).status(),
                  FailsAt(ErrorReason::ABOVE_ADAPTER_LIMIT, std::string(row.field)));
    }
    CreateQpArguments arguments = owner.PairArguments();
    arguments.limits.*row.limit = row.most;
    ASSERT_TRUE(owner.ClosePair(owner.Pair(arguments)).ok()) << row.field;
  }
  EXPECT_EQ(world.Held(), held);
}

TEST_F(QueuePairTest, AClosingQueueTakesNoPair) {
  const CompletionQueueId closing = owner.Queue();
  CreateQpArguments arguments = owner.PairArguments();
  arguments.receive_queue = arguments.initiator_queue = closing;
  const QueuePairId keeper = owner.Pair(arguments);
  Awaited<absl::Status> closed;
  ASSERT_TRUE(owner.session->Begin()
                  ->queues()
                  .Close(closing, {}, [&](const absl::Status& status) { closed.Set(status); })
                  .pending());
  const std::string held = world.Held();
  for (const bool receive : {true, false}) {
    arguments = owner.PairArguments();
    (receive ? arguments.receive_queue : arguments.initiator_queue) = closing;
    EXPECT_THAT(owner.session->Begin()->pairs().Create(arguments).status(),
                FailsAt(ErrorReason::OBJECT_CLOSING, receive ? "receive_cq_id" : "initiator_cq_id"));
  }
  EXPECT_EQ(world.Held(), held);
  ASSERT_TRUE(owner.ClosePair(keeper).ok());
  EXPECT_EQ(closed.times(), 1);
}

TEST_F(QueuePairTest, AQueueOfAnotherAdapterIsRefused) {
  const CompletionQueueId foreign = *owner.session->Begin()->queues().Create(owner.Adapter(), 1, 0);
  const std::string held = world.Held();
  for (const bool receive : {true, false}) {
    CreateQpArguments arguments = owner.PairArguments();
    (receive ? arguments.receive_queue : arguments.initiator_queue) = foreign;
    EXPECT_THAT(owner.session->Begin()->pairs().Create(arguments).status(),
                FailsAt(ErrorReason::ADAPTER_MISMATCH, receive ? "receive_cq_id" : "initiator_cq_id"));
  }
  EXPECT_EQ(world.Held(), held);
}

}  // namespace
}  // namespace rnicd::core
