// Queue pairs and fast registration used by a malicious or faulty client. A refused request has no effect, and a
// failing one costs its client a queue pair and other clients nothing.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kAccessViolation = static_cast<uint32_t>(NtStatus::kAccessViolation);
constexpr uint32_t kCancelled = static_cast<uint32_t>(NtStatus::kCancelled);
constexpr uint32_t kIoTimeout = static_cast<uint32_t>(NtStatus::kIoTimeout);

class HostileQueue : public DaemonTest {
 protected:
  // Fast-registers one page at kBase, for the peer to read and write. Returns the remote token.
  static uint32_t RegisterPage(TestQueue& queue, TestMemory& memory, uint32_t flags) {
    const uint64_t mr = FastRegion(queue.session(), 1);
    queue.MustRun(FastRegisterRequest(mr, memory.Pages(0, 1), kPage, kBase, flags));
    return queue.session().RemoteToken(mr).response.remote_token();
  }
};

// Tokens that were never issued, as many as a test can try, reach nothing, and each try costs a queue pair.
TEST_F(HostileQueue, GuessedTokensReachNothing) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.far_session, kPage);
  memory.SetText(0, "untouched");
  const uint32_t token = RegisterPage(pair.far, memory, kRemoteRights);
  for (const uint32_t guess : {0u, 1u, token + 1, token - 1, token ^ 0x80u, token ^ 0x100u, token ^ 0x80000000u,
                               std::numeric_limits<uint32_t>::max(), PrivilegedToken(pair.far_session)}) {
    TestQueue near(pair.near_session);
    TestQueue far(pair.far_session);
    ConnectPair(near, far);
    EXPECT_EQ(near.Run(InlineWriteRequest("guessed", kBase, guess)).result().ntstatus(), kAccessViolation) << guess;
  }
  EXPECT_EQ(memory.Text(0, 9), "untouched");
  pair.near.MustRun(InlineWriteRequest("token", kBase, token));
  EXPECT_EQ(memory.Text(0, 9), "tokenched");
}

TEST_F(HostileQueue, EmptyAndOverlongChainsAreRefusedWhole) {
  ConnectedPair pair(daemon(), {.cq_depth = 2048, .initiator_queue_depth = 2048});
  ExpectRefused(pair.near.Post({}), ErrorReason::BATCH_SIZE, "requests");
  ExpectRefused(pair.near.Post(std::vector<v1::WorkRequest>(1025, WriteRequest({}, 0, 0))), ErrorReason::BATCH_SIZE,
                "requests");
  EXPECT_TRUE(pair.near.DrainInitiator().empty());
  pair.near.MustPost(std::vector<v1::WorkRequest>(1024, WriteRequest({}, 0, 0)));
  for (int count = 0; count < 1024; ++count) {
    EXPECT_EQ(pair.near.NextInitiator().result().ntstatus(), kStatusSuccess);
  }
}

// A client that dies while all its objects are in use: its connection is cut without closing anything.
struct Victim {
  explicit Victim(DaemonProcess& daemon)
      : session(daemon, "victim"), queue(session), busy_queue(session), memory(session, 4 * kPage) {}
  // One page for the peer, as a fast region; a normal region and a window; receives without senders, and a message
  // without a receive.
  void FillUp(uint32_t& token) {
    session.RegisterWhole(session.CreateMr(), memory.id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_WRITE);
    CreateMw(session);
    const uint64_t mr = FastRegion(session, 1);
    queue.MustRun(FastRegisterRequest(mr, memory.Pages(0, 1), kPage, kBase, kRemoteRights));
    token = session.RemoteToken(mr).response.remote_token();
    queue.MustPost({ReceiveRequest({}), ReceiveRequest({})});
    busy_queue.MustPost({SendRequest({InlineSge("x")}, v1::OP_FLAG_INLINE), InvalidateMrRequest(mr)});
  }

  TestSession session;
  TestQueue queue;
  TestQueue busy_queue;
  TestMemory memory;
};

TEST_F(HostileQueue, PeerOfAClientThatIsGoneIsToldOnceAndIsNotFlushed) {
  TestSession survivor(daemon(), "survivor");
  EventReader events(survivor);
  TestQueue near(survivor, {.qp_context = 0xabc});
  TestQueue near_of_busy(survivor, {.qp_context = 0xdef});
  uint32_t token = 0;
  {
    Victim victim(daemon());
    ConnectPair(near, victim.queue);
    ConnectPair(near_of_busy, victim.busy_queue);
    victim.FillUp(token);
    near.MustRun(InlineWriteRequest("alive", kBase, token));
    EXPECT_EQ(victim.memory.Text(0, 5), "alive");
    near.MustPost({ReceiveRequest({}, 11), ReceiveRequest({}, 12)});
  }
  std::vector<uint64_t> told;
  for (int count = 0; count < 2; ++count) {
    const std::optional<v1::WatchEventsResponse> event = events.Next();
    ASSERT_TRUE(event.has_value());
    EXPECT_TRUE(event->has_qp_disconnected()) << event->ShortDebugString();
    told.push_back(event->qp_disconnected().qp_context());
  }
  EXPECT_EQ(std::ranges::count(told, 0xabcu), 1);
  EXPECT_EQ(std::ranges::count(told, 0xdefu), 1);
  EXPECT_TRUE(near.DrainReceive().empty()) << "the end of a peer is no flush";
  // A request that needs the peer fails, which ends the queue pair.
  EXPECT_EQ(near.Run(InlineWriteRequest("gone", kBase, token)).result().ntstatus(), kIoTimeout);
  EXPECT_EQ(near.Query().state(), v1::QP_STATE_ERROR);
  ExpectOk(CloseQp(survivor, near.qp_id()));
  for (const uint64_t context : {11, 12}) {
    const v1::CqResultEx receive = near.NextReceive();
    EXPECT_EQ(receive.result().ntstatus(), kCancelled);
    EXPECT_EQ(receive.result().request_context(), context);
  }
  EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 1; }));
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), 0u);
  ExpectOk(survivor.CloseSession());
  const std::vector<v1::WatchEventsResponse> rest = events.RestUntilEnd();
  EXPECT_EQ(std::ranges::count_if(rest, [](const auto& event) { return event.has_qp_disconnected(); }), 0);
}

// Any queue pair may connect to an address it knows; it reaches nothing unless the other side connects to it too.
TEST_F(HostileQueue, StrangerThatKnowsAddressAndTokenReachesNothing) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.far_session, kPage);
  memory.SetText(0, "untouched");
  const uint32_t token = RegisterPage(pair.far, memory, kRemoteRights);
  TestSession stranger_session(daemon(), "stranger");
  TestQueue stranger(stranger_session);
  if (Connect(stranger, pair.far.Query().address()).ok()) {
    const auto posted = stranger.Post({InlineWriteRequest("stranger", kBase, token, 7)});
    ExpectOk(posted);
    for (const v1::CqResultEx& completion : stranger.DrainInitiator()) {
      EXPECT_NE(completion.result().ntstatus(), kStatusSuccess);
    }
  }
  EXPECT_EQ(memory.Text(0, 9), "untouched");
  // The two queue pairs that are connected to each other still work.
  pair.near.MustRun(InlineWriteRequest("friend", kBase, token));
  EXPECT_EQ(memory.Text(0, 9), "friendhed");
  EXPECT_EQ(pair.far.Query().state(), v1::QP_STATE_READY_TO_SEND);
}

}  // namespace
}  // namespace rnicd::test
