// Set-up and connecting of a queue pair, posting to it, and the requests that reach the card.

#include "provider/verbs/queue/verbs_endpoint.h"

#include <arpa/inet.h>

#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class VerbsEndpointTest : public VerbsTest {
 protected:
  std::vector<uint64_t> Serials(const Side& side) const {
    std::vector<uint64_t> serials;
    for (const PostedSend& send : side.posted()) {
      serials.push_back(send.wr_id);
    }
    return serials;
  }

  Side near_{daemon_};
  Side far_{daemon_};
};

// --- states ---

TEST_F(VerbsEndpointTest, AnAddressSaysWhereTheQueuePairIsAndWhoMadeIt) {
  const std::optional<QpAddress> address = ParseQpAddress(near_.pair().address());
  ASSERT_TRUE(address.has_value());
  EXPECT_LE(near_.pair().address().size(), 64u);
  EXPECT_THAT(fake_.qp_nums(), ::testing::Contains(address->qpn));
  EXPECT_EQ(address->gid.raw[12], 10) << "IPv4 before link-local";
  EXPECT_EQ(address->mtu, IBV_MTU_1024);
  EXPECT_NE(address->origin, 0u);
  EXPECT_EQ(address->origin, ParseQpAddress(far_.pair().address())->origin);
}

TEST_F(VerbsEndpointTest, ItIsMadeInInitWithRoomForItsQueuesAndAProbe) {
  EXPECT_EQ(near_.state(), QueuePairState::kInit);
  EXPECT_EQ(fake_.state(near_.number()), IBV_QPS_INIT);
  const ibv_qp_init_attr made = fake_.init_attributes(near_.number());
  EXPECT_EQ(made.qp_type, IBV_QPT_RC);
  EXPECT_EQ(made.cap.max_send_wr, kRoomyLimits.initiator_depth + 1);
  EXPECT_EQ(made.cap.max_recv_wr, kRoomyLimits.receive_depth);
  EXPECT_GE(made.cap.max_send_sge, kRoomyLimits.initiator_entries);
  EXPECT_EQ(made.cap.max_recv_sge, kRoomyLimits.receive_entries);
  EXPECT_EQ(made.cap.max_inline_data, kRoomyLimits.inline_bytes);
  const auto init = fake_.transition(near_.number(), IBV_QPS_INIT);
  ASSERT_TRUE(init.has_value());
  EXPECT_EQ(init->first.port_num, 1);
  EXPECT_EQ(init->first.qp_access_flags,
            static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
}

TEST_F(VerbsEndpointTest, TheCardIsLedToThePeerWithWhatBothSaidOfThemselves) {
  ASSERT_TRUE(near_.ConnectTo(far_).ok());
  EXPECT_EQ(near_.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(fake_.state(near_.number()), IBV_QPS_RTS);
  EXPECT_EQ(fake_.state(far_.number()), IBV_QPS_INIT);
  const QpAddress here = *ParseQpAddress(near_.pair().address());
  const QpAddress there = *ParseQpAddress(far_.pair().address());
  const auto receiving = fake_.transition(near_.number(), IBV_QPS_RTR);
  const auto sending = fake_.transition(near_.number(), IBV_QPS_RTS);
  ASSERT_TRUE(receiving.has_value() && sending.has_value());
  EXPECT_EQ(receiving->first.dest_qp_num, there.qpn);
  EXPECT_EQ(receiving->first.rq_psn, there.psn);
  EXPECT_EQ(receiving->first.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(receiving->first.ah_attr.is_global, 1);
  EXPECT_EQ(receiving->first.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(sending->first.sq_psn, here.psn);
  EXPECT_EQ(sending->first.timeout, VerbsOptions{}.ack_timeout);
  EXPECT_EQ(sending->first.rnr_retry, 7) << "a send without a receive waits";
}

TEST_F(VerbsEndpointTest, AnAddressOfThisDaemonThatIsNobodysIsRefusedBeforeTheCardIsAsked) {
  QpAddress nobody = *ParseQpAddress(far_.pair().address());
  nobody.qpn ^= 0x800000;
  EXPECT_TRUE(FailedWith(near_.pair().Connect(FormatQpAddress(nobody)), ErrorReason::QP_ADDRESS_UNKNOWN));
  EXPECT_EQ(near_.state(), QueuePairState::kInit);
  EXPECT_EQ(fake_.state(near_.number()), IBV_QPS_INIT);
  EXPECT_TRUE(near_.ConnectTo(far_).ok());
}

TEST_F(VerbsEndpointTest, APeerThatIsNoDaemonIsTakenAtItsWord) {
  ASSERT_TRUE(near_.pair().Connect(FormatQpAddress(Foreigner())).ok());
  const auto receiving = fake_.transition(near_.number(), IBV_QPS_RTR);
  ASSERT_TRUE(receiving.has_value());
  EXPECT_EQ(receiving->first.dest_qp_num, 0x777u);
  EXPECT_EQ(receiving->first.rq_psn, 0x123456u);
  EXPECT_EQ(receiving->first.path_mtu, IBV_MTU_512) << "the smaller of both";
  EXPECT_EQ(receiving->first.ah_attr.grh.dgid.raw[0], 0xfe);
  near_.Post(Write(1));
  EXPECT_THAT(near_.posted(), SizeIs(1)) << "nobody says when such a peer has connected";
}

TEST_F(VerbsEndpointTest, AFailedRouteSaysThatTheAddressIsUnknownAndMayBeTriedAgain) {
  for (const int error : {EINVAL, ENETUNREACH, ETIMEDOUT, EHOSTUNREACH}) {
    fake_.FailNext("ModifyQp", error);
    EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_ADDRESS_UNKNOWN)) << error;
    EXPECT_EQ(near_.state(), QueuePairState::kInit);
  }
  EXPECT_TRUE(near_.ConnectTo(far_).ok());
}

TEST_F(VerbsEndpointTest, ACardThatCannotSaysSo) {
  fake_.FailNext("ModifyQp", ENOMEM);
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(near_.state(), QueuePairState::kInit);
  fake_.FailNext("ModifyQp", ENOMEM, 1, /*skip=*/1);
  // The pair fails halfway, and its owner gets that error.
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  EXPECT_EQ(near_.state(), QueuePairState::kError) << "halfway there is no way back";
}

TEST_F(VerbsEndpointTest, TheGidIsFoundWhereItStandsAtTheMoment) {
  std::vector<GidEntry> gids = FakeGids();
  gids[1].index = 9;
  fake_.SetGids("fake0", gids);
  ASSERT_TRUE(near_.ConnectTo(far_).ok());
  EXPECT_EQ(fake_.transition(near_.number(), IBV_QPS_RTR)->first.ah_attr.grh.sgid_index, 9);
}

TEST_F(VerbsEndpointTest, WhoseGidIsGoneCannotConnect) {
  fake_.SetGids("fake0", {FakeGids()[0]});
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  fake_.SetGids("fake0", {});
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  fake_.SetGids("fake0", FakeGids());
  EXPECT_TRUE(near_.ConnectTo(far_).ok());
}

// A queue pair names its GID with eight bits; a port's table may be longer.
TEST_F(VerbsEndpointTest, AGidThatAQueuePairCannotNameIsNotTakenForAnother) {
  std::vector<GidEntry> gids = FakeGids();
  gids[1].index = 256;
  fake_.SetGids("fake0", gids);
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::QP_NOT_CONNECTABLE));
  EXPECT_EQ(fake_.transition(near_.number(), IBV_QPS_RTR), std::nullopt);
}

TEST_F(VerbsEndpointTest, WhatACardRefusesLeavesNothingBehind) {
  const FakeLive before = fake_.live();
  for (const char* const call : {"CreateCq", "ArmCq", "CreateQp", "ModifyQp", "QueryPort"}) {
    RecordingListener listener;
    auto queue = near_.adapter().CreateCompletionQueue(16);
    fake_.FailNext(call, ENOMEM);
    const auto pair = near_.domain().CreateQueuePair(kRoomyLimits, **queue, **queue, listener);
    EXPECT_TRUE(FailedWith(pair.status(), ErrorReason::DEVICE_OUT_OF_RESOURCES)) << call << ": " << pair.status();
    EXPECT_EQ(fake_.live(), before) << call;
  }
}

// --- waiting for the peer ---

TEST_F(VerbsEndpointTest, ADaemonNextDoorIsNotWaitedFor) {
  Daemon next_door(fake_);
  Side neighbour(next_door);
  ASSERT_TRUE(near_.ConnectTo(neighbour).ok());
  near_.Post(Send(1));
  EXPECT_THAT(near_.posted(), SizeIs(1));
}

// --- posting ---

TEST_F(VerbsEndpointTest, TheCardIsGivenRequestsAtOnceAndInOrder) {
  Connect(near_, far_);
  ASSERT_TRUE(near_.pair().Enqueue(Send(1)).ok());
  ASSERT_TRUE(near_.pair().Enqueue(Write(2)).ok());
  near_.pair().Kick();
  near_.Post(Read(3));
  EXPECT_THAT(Serials(near_), ElementsAre(1, 2, 3));
  EXPECT_EQ(near_.posted()[0].opcode, IBV_WR_SEND);
  EXPECT_EQ(near_.posted()[1].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(near_.posted()[2].opcode, IBV_WR_RDMA_READ);
}

TEST_F(VerbsEndpointTest, ARequestSaysToTheCardWhatItSaysToTheDaemon) {
  Connect(near_, far_);
  near_.Post(Fenced(Write(1, {near_.Entry(16, 8), near_.Entry(100, 0), near_.Entry(64, 4)}, {0xabcd}, 32)));
  const std::vector<PostedSend> posted = near_.posted();
  ASSERT_THAT(posted, SizeIs(1));
  EXPECT_NE(posted[0].send_flags & IBV_SEND_FENCE, 0u);
  EXPECT_NE(posted[0].send_flags & IBV_SEND_SIGNALED, 0u);
  EXPECT_EQ(posted[0].remote_addr, Side::kBase + 32);
  EXPECT_EQ(posted[0].rkey, 0xabcdu);
  ASSERT_THAT(posted[0].entries, SizeIs(2)) << "a card takes a length of 0 for 2 GiB";
  EXPECT_EQ(posted[0].entries[0].addr, Side::kBase + 16);
  EXPECT_EQ(posted[0].entries[1].length, 4u);
  EXPECT_EQ(posted[0].entries[0].lkey, near_.region()->local_token().value);
}

TEST_F(VerbsEndpointTest, InlineDataTravelInsteadOfTheEntries) {
  Connect(near_, far_);
  WorkRequest request = Send(1, {near_.Entry(uint64_t{1} << 40, 7)});
  request.payload = InlineData{std::byte{'x'}, std::byte{'y'}};
  near_.Post(std::move(request));
  WorkRequest nothing = Send(2, {near_.Entry(uint64_t{1} << 40, 7)});
  nothing.payload = InlineData{};
  near_.Post(std::move(nothing));
  const std::vector<PostedSend> posted = near_.posted();
  ASSERT_THAT(posted, SizeIs(2));
  EXPECT_NE(posted[0].send_flags & IBV_SEND_INLINE, 0u);
  EXPECT_THAT(posted[0].inline_bytes, ElementsAre(std::byte{'x'}, std::byte{'y'}));
  EXPECT_THAT(posted[1].inline_bytes, IsEmpty());
  EXPECT_THAT(posted[1].entries, IsEmpty());
}

TEST_F(VerbsEndpointTest, SolicitingIsSaidInImmediateDataToADaemonAndByAFlagToOthers) {
  Side stranger_friend(daemon_);
  ASSERT_TRUE(stranger_friend.pair().Connect(FormatQpAddress(Foreigner())).ok());
  Connect(near_, far_);
  near_.Post(Send(1, {}, {.solicit = true}));
  near_.Post(Send(2, {}, {.invalidate = RemoteToken{0x1234}}));
  ASSERT_THAT(near_.posted(), SizeIs(2));
  EXPECT_EQ(near_.posted()[0].opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(near_.posted()[0].imm_data, htonl(kImmediateSolicit));
  EXPECT_EQ(near_.posted()[1].opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(near_.posted()[1].imm_data, htonl(0x1234));
  stranger_friend.Post(Send(1, {}, {.solicit = true}));
  stranger_friend.Post(Send(2, {}, {.solicit = true, .invalidate = RemoteToken{0x1234}}));
  ASSERT_THAT(stranger_friend.posted(), SizeIs(2));
  EXPECT_EQ(stranger_friend.posted()[0].opcode, IBV_WR_SEND);
  EXPECT_NE(stranger_friend.posted()[0].send_flags & IBV_SEND_SOLICITED, 0u);
  EXPECT_EQ(stranger_friend.posted()[1].opcode, IBV_WR_SEND_WITH_INV);
  EXPECT_EQ(stranger_friend.posted()[1].invalidate_rkey, 0x1234u);
}

// --- ending ---

TEST_F(VerbsEndpointTest, AnUnknownLocalTokenFailsInItsTurn) {
  Connect(near_, far_);
  near_.Post(Write(1));
  near_.Post(Write(2, {{.address = {Side::kBase}, .length = 1, .token = {0xdead}}}, {7}));
  near_.Post(Write(3));
  EXPECT_THAT(Serials(near_), ElementsAre(1)) << "what is behind a request waits for it";
  EXPECT_EQ(near_.state(), QueuePairState::kReadyToSend);
  ASSERT_TRUE(fake_.Complete(near_.number()));
  ASSERT_TRUE(near_.Initiated(3));
  EXPECT_EQ(near_.initiated(),
            (Outcomes{{1, kWritten, kOk}, {2, kWritten, NtStatus::kAccessViolation}, {3, kWritten, kCancelled}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_EQ(fake_.state(near_.number()), IBV_QPS_ERR);
  EXPECT_EQ(near_.peer_gone(), 0) << "this side itself is at fault";
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
}

// --- receives ---

TEST_F(VerbsEndpointTest, OfADaemonAReceiveIsSolicitedWhenTheSenderSaysSo) {
  Connect(near_, far_);
  near_.Post(Receive(10, {near_.Entry(0, 8), near_.Entry(20, 0), near_.Entry(8, 8)}));
  ASSERT_THAT(fake_.PostedReceives(near_.number()), SizeIs(1));
  EXPECT_THAT(fake_.PostedReceives(near_.number())[0].entries, SizeIs(2));
  near_.Post(Receive(11, {near_.Entry(0, 8)}));
  ASSERT_TRUE(fake_.Receive(near_.number(), 12));
  ASSERT_TRUE(fake_.Receive(near_.number(), 5, IBV_WC_WITH_IMM, htonl(kImmediateSolicit)));
  ASSERT_TRUE(near_.Received(2));
  const std::vector<Completion> received = near_.listener().completions(WorkQueue::kReceive);
  EXPECT_EQ(received[0].request_context, 10u);
  EXPECT_EQ(received[0].bytes, 12u);
  EXPECT_FALSE(received[0].solicited);
  EXPECT_EQ(received[1].bytes, 5u);
  EXPECT_EQ(received[1].type, kReceived);
  EXPECT_TRUE(received[1].solicited);
}

TEST_F(VerbsEndpointTest, OfAnyOtherPeerEveryMessageWakes) {
  ASSERT_TRUE(near_.pair().Connect(FormatQpAddress(Foreigner())).ok());
  near_.Post(Receive(10));
  near_.Post(Receive(11));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0));
  ASSERT_TRUE(fake_.Receive(near_.number(), 0, IBV_WC_WITH_IMM, htonl(0x4711)));
  ASSERT_TRUE(near_.Received(2));
  for (const Completion& completion : near_.listener().completions(WorkQueue::kReceive)) {
    EXPECT_TRUE(completion.solicited);
    EXPECT_EQ(completion.type, kReceived) << "its immediate data are its own business";
    EXPECT_EQ(completion.status, kOk);
  }
}

}  // namespace
}  // namespace rnicd::provider
