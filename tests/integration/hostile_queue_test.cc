// Queue pairs and fast registration used by a malicious or faulty client. A refused request has no effect, and a
// failing one costs its client a queue pair and other clients nothing.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/event_reader.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kManyPages = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kAccessViolation = static_cast<uint32_t>(NtStatus::kAccessViolation);
constexpr uint32_t kCancelled = static_cast<uint32_t>(NtStatus::kCancelled);
constexpr uint32_t kIoTimeout = static_cast<uint32_t>(NtStatus::kIoTimeout);
constexpr char kFirstPage[] = "fast_register.adapter_page_array[0]";

class HostileQueue : public DaemonTest {
 protected:
  // Fast-registers one page at kBase, for the peer to read and write. Returns the remote token.
  static uint32_t RegisterPage(TestQueue& queue, TestMemory& memory, uint32_t flags) {
    const uint64_t mr = FastRegion(queue.session(), 1);
    queue.MustRun(FastRegisterRequest(mr, memory.Pages(0, 1), kPage, kBase, flags));
    return queue.session().RemoteToken(mr).response.remote_token();
  }

  static CallResult<v1::ReleaseLamResponse> ReleaseLam(TestSession& session, uint64_t lam_id) {
    v1::ReleaseLamRequest request;
    request.set_lam_id(lam_id);
    return session.Call(&MemoryStub::ReleaseLam, request);
  }

  // The request breaks two rules, and the order of the checks is not specified.
  // `item` is the part of the field that names the item of a batch.
  static void ExpectTooManyPages(const v1::ErrorDetail& detail, const std::string& item = "") {
    if (detail.reason() == v1::ERROR_REASON_QUOTA_FAST_REGISTER_PAGES) {
      ExpectRefused(detail, ErrorReason::QUOTA_FAST_REGISTER_PAGES, item);
    } else {
      ExpectRefused(detail, ErrorReason::PAGE_COUNT_UNSUPPORTED,
                    item.empty() ? "adapter_page_count" : item + ".adapter_page_count");
    }
  }
};

TEST_F(HostileQueue, AsManyPagesAsANumberCanSayAreRefused) {
  TestSession session(daemon());
  for (int count = 0; count < 3; ++count) {
    const auto refused = InitializeFast(session, session.CreateMr(true), kManyPages, true);
    ASSERT_FALSE(refused.ok());
    ExpectTooManyPages(refused.detail);
  }
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
}

TEST_F(HostileQueue, TooManyPagesAreRefusedInEveryItemOfABatch) {
  TestSession session(daemon());
  v1::BatchInitializeFastRegisterMrRequest batch;
  for (const uint32_t pages : {kManyPages, 1u, kManyPages, kManyPages / 2 + 1}) {
    v1::InitializeFastRegisterMrRequest& item = *batch.add_items();
    item.set_mr_id(session.CreateMr(true));
    item.set_adapter_page_count(pages);
  }
  const auto answer = session.Call(&MemoryStub::BatchInitializeFastRegisterMr, batch);
  ExpectOk(answer);
  ASSERT_EQ(answer.response.outcomes_size(), 4);
  for (const int index : {0, 2, 3}) {
    ExpectTooManyPages(answer.response.outcomes(index).error(), "items[" + std::to_string(index) + "]");
  }
  EXPECT_EQ(answer.response.outcomes(1).response().ntstatus(), kStatusSuccess);
  EXPECT_EQ(session.Use("fast_register_pages").used(), 1u);
}

TEST_F(HostileQueue, TooManyPagesAreRefusedOnceWhereTheyMayPend) {
  TestSession session(daemon());
  EventReader events(session);
  const auto answer = InitializeFast(session, session.CreateMr(true), kManyPages, true, true, 5);
  if (answer.ok()) {
    EXPECT_EQ(answer.response.ntstatus(), kStatusPending);
    ExpectTooManyPages(events.NextCompletion().error());
  } else {
    ExpectTooManyPages(answer.detail);
  }
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  ExpectOk(session.CloseSession());
  EXPECT_EQ(CountCompletions(events.RestUntilEnd(), 5), 0);
}

TEST_F(HostileQueue, PagesOfAnotherSessionAreUnknown) {
  ConnectedPair pair(daemon());
  TestMemory secret(pair.far_session, 2 * kPage);
  secret.SetText(0, "not for the near side");
  const uint64_t mr = FastRegion(pair.near_session, 2);
  pair.near.ExpectPostRefused(FastRegisterRequest(mr, secret.Pages(0, 2), 2 * kPage, kBase, kRemoteRights),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, kFirstPage);
  const uint64_t page = secret.Pages(0, 1)[0];
  pair.near.ExpectPostRefused(SendRequest({Sge(page, kPage, PrivilegedToken(pair.near_session))}),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "send.sges[0].address");
  // The other session's privileged token does not work either: it belongs to another domain.
  pair.far.MustPost({ReceiveRequest({})});
  const auto stolen = pair.near.Post({SendRequest({Sge(page, 8, PrivilegedToken(pair.far_session))})});
  ExpectOk(stolen);
  if (stolen.response.posted() == 0) {
    // On a card where the token is the same for every domain.
    ExpectRefused(stolen.response.failure(), ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "requests[0].send.sges[0].address");
  } else {
    EXPECT_EQ(pair.near.NextInitiator().result().ntstatus(), kAccessViolation);
  }
}

TEST_F(HostileQueue, PagesOfAReleasedMappingAreUnknown) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.near_session, 2 * kPage);
  const std::vector<uint64_t> pages = memory.Pages(0, 2);
  ExpectOk(ReleaseLam(pair.near_session, memory.lam().lam_id()));
  const uint64_t mr = FastRegion(pair.near_session, 2);
  pair.near.ExpectPostRefused(FastRegisterRequest(mr, pages, 2 * kPage, kBase, kRemoteRights),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, kFirstPage);
  pair.near.ExpectPostRefused(ReceiveRequest({Sge(pages[1], 8, PrivilegedToken(pair.near_session))}),
                              ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "receive.sges[0].address");
  EXPECT_EQ(pair.near_session.Use("pinned_bytes").used(), 0u);
  ExpectOk(pair.near_session.Release(memory.id()));
}

// Two of many: daemon/core/session_post_register_test.cc has the others.
TEST_F(HostileQueue, MadeUpPagesAreRefusedAndTheRegionIsAsItWas) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.near_session, 3 * kPage);
  const uint64_t mr = FastRegion(pair.near_session, 3);
  const std::vector<uint64_t> pages = memory.Pages(0, 3);
  pair.near.ExpectPostRefused(
      FastRegisterRequest(mr, {pages[0], pages[1], std::ranges::max(pages) + kPage}, 3 * kPage, kBase, kRemoteRights),
      ErrorReason::LOGICAL_ADDRESS_UNKNOWN, "fast_register.adapter_page_array[2]");
  pair.near.ExpectPostRefused(FastRegisterRequest(mr, {pages[0] + 1, pages[1]}, 2 * kPage, kBase, kRemoteRights),
                              ErrorReason::LOGICAL_ADDRESS_UNALIGNED, kFirstPage);
  pair.near.MustRun(FastRegisterRequest(mr, pages, 3 * kPage, kBase, kRemoteRights));
}

TEST_F(HostileQueue, AddressesAtTheEndOfTheRangeDoNotWrapAround) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.far_session, 2 * kPage);
  memory.SetText(0, "untouched");
  const uint32_t token = RegisterPage(pair.far, memory, kRemoteRights);
  // The target's end, then the requester's own.
  for (const uint64_t address : {kMax, kMax - 3, kBase - 1, uint64_t{0}}) {
    TestQueue near(pair.near_session);
    TestQueue far(pair.far_session);
    ConnectPair(near, far);
    EXPECT_EQ(near.Run(InlineWriteRequest("12345678", address, token)).result().ntstatus(), kAccessViolation);
  }
  const uint64_t own = pair.near_session.CreateMr();
  TestMemory source(pair.near_session, kPage);
  const uint32_t local = pair.near_session.RegisterWhole(own, source.id(), kPage).local_token();
  for (const uint64_t address : {kMax, kMax - 3, kBase + kPage - 4}) {
    TestQueue near(pair.near_session);
    TestQueue far(pair.far_session);
    ConnectPair(near, far);
    EXPECT_EQ(near.Run(WriteRequest({Sge(address, 8, local)}, kBase, token)).result().ntstatus(), kAccessViolation);
  }
  EXPECT_EQ(memory.Text(0, 9), "untouched");
}

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

TEST_F(HostileQueue, ChainEndsAtTheFirstRefusedRequest) {
  ConnectedPair pair(daemon());
  TestMemory memory(pair.far_session, 2 * kPage);
  const std::vector<uint64_t> first_page = memory.Pages(0, 1);
  const uint64_t first = FastRegion(pair.far_session, 1);
  const uint64_t last = FastRegion(pair.far_session, 1);
  const auto posted =
      pair.far.Post({FastRegisterRequest(first, first_page, kPage, kBase, kRemoteRights, 0, 1),
                     WriteRequest({}, 0, 0, 0, 2), FastRegisterRequest(first, {}, kPage, kBase, kRemoteRights, 0, 3),
                     FastRegisterRequest(last, first_page, kPage, kBase, kRemoteRights, 0, 4)});
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 2u);
  ExpectRefused(posted.response.failure(), ErrorReason::FIELD_OUT_OF_RANGE,
                "requests[2].fast_register.adapter_page_array");
  ASSERT_EQ(posted.response.issued_tokens_size(), 1);
  EXPECT_EQ(pair.far.NextInitiator().result().request_context(), 1u);
  EXPECT_EQ(pair.far.NextInitiator().result().request_context(), 2u);
  EXPECT_TRUE(pair.far.DrainInitiator().empty()) << "a request behind the refused one was executed";
  pair.near.MustRun(InlineWriteRequest("first", kBase, posted.response.issued_tokens(0).remote_token()));
  EXPECT_EQ(memory.Text(0, 5), "first");
  // The last one's region is unchanged, and the queue pair still works.
  pair.far.MustRun(FastRegisterRequest(last, memory.Pages(1, 1), kPage, kBase, kRemoteRights));
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

// A client that never polls its queue: the daemon keeps at most what the client's queues may hold.
TEST_F(HostileQueue, ClientThatNeverPollsKillsItsOwnQueue) {
  constexpr uint32_t kCqDepth = 16;
  constexpr uint32_t kQueueDepth = 8;
  constexpr int kTries = 10'000;
  ConnectedPair pair(daemon(), {.cq_depth = kCqDepth, .initiator_queue_depth = kQueueDepth});
  EventReader near_events(pair.near_session);
  EventReader far_events(pair.far_session);
  pair.near.MustPost({ReceiveRequest({})});
  ExpectOk(Arm(pair.near_session, pair.near.initiator_cq_id(), v1::CQ_NOTIFY_TYPE_ERRORS));
  uint32_t accepted = 0;
  std::optional<v1::ErrorDetail> refusal;
  for (int tries = 0; tries < kTries && !refusal.has_value(); ++tries) {
    const auto posted = pair.near.Post({WriteRequest({}, 0, 0)});
    ASSERT_TRUE(ExpectOk(posted));
    accepted += posted.response.posted();
    if (posted.response.has_failure() && posted.response.failure().reason() != v1::ERROR_REASON_QUEUE_FULL) {
      refusal = posted.response.failure();
    }
  }
  ASSERT_TRUE(refusal.has_value()) << accepted << " requests were accepted";
  EXPECT_GT(accepted, kCqDepth);
  EXPECT_LE(accepted, kCqDepth + kQueueDepth);
  ExpectRefused(*refusal, ErrorReason::QP_NOT_CONNECTED, "requests[0]");
  v1::GetCqResultsRequest poll;
  poll.set_cq_id(pair.near.initiator_cq_id());
  poll.set_max_results(1);
  ExpectRefused(pair.near_session.Call(&QueueStub::GetCqResults, poll), ErrorReason::CQ_OVERRUN, "cq_id");
  EXPECT_EQ(pair.near.Query().state(), v1::QP_STATE_ERROR);
  const std::optional<v1::WatchEventsResponse> overrun = near_events.Next();
  ASSERT_TRUE(overrun.has_value());
  EXPECT_EQ(overrun->cq_notification().cq_id(), pair.near.initiator_cq_id());
  EXPECT_EQ(overrun->cq_notification().ntstatus(), static_cast<uint32_t>(NtStatus::kBufferOverflow));
  // The peer gets an event, and its queues stay usable.
  const std::optional<v1::WatchEventsResponse> disconnected = far_events.Next();
  ASSERT_TRUE(disconnected.has_value());
  EXPECT_EQ(disconnected->qp_disconnected().qp_id(), pair.far.qp_id());
  EXPECT_TRUE(pair.far.DrainInitiator().empty());
  // A dead queue refuses every further request.
  for (int count = 0; count < 20; ++count) {
    const auto posted = pair.near.Post(std::vector<v1::WorkRequest>(1024, WriteRequest({}, 0, 0)));
    EXPECT_EQ(posted.response.posted(), 0u);
  }
  EXPECT_EQ(pair.near_session.Use("cq_entries").used(), 2 * kCqDepth);
}

// Two queue pairs share the queue that overruns: both die, and a third with queues of its own does not.
TEST_F(HostileQueue, OverrunKillsEveryQueuePairOfTheQueueAndNoOther) {
  ConnectedPair pair(daemon(), {.cq_depth = 4, .receive_queue_depth = 8});
  v1::CreateQpRequest create;
  create.set_pd_id(pair.far_session.pd_id());
  create.set_receive_cq_id(pair.far.receive_cq_id());
  create.set_initiator_cq_id(pair.far.initiator_cq_id());
  create.set_receive_queue_depth(1);
  const auto sharer = pair.far_session.Call(&QueueStub::CreateQp, create);
  ExpectOk(sharer);
  TestQueue bystander(pair.far_session);
  pair.far.MustPost(std::vector<v1::WorkRequest>(5, ReceiveRequest({})));
  pair.near.MustPost(std::vector<v1::WorkRequest>(5, SendRequest({}, v1::OP_FLAG_SILENT_SUCCESS)));
  EXPECT_TRUE(Eventually([&] { return pair.far.Query().state() == v1::QP_STATE_ERROR; }));
  v1::QueryQpRequest query;
  query.set_qp_id(sharer.response.qp_id());
  EXPECT_EQ(pair.far_session.Call(&QueueStub::QueryQp, query).response.state(), v1::QP_STATE_ERROR);
  EXPECT_EQ(bystander.Query().state(), v1::QP_STATE_INIT);
  // A dead queue cannot serve another queue pair.
  ExpectRefused(pair.far_session.Call(&QueueStub::CreateQp, create), ErrorReason::CQ_OVERRUN, "receive_cq_id");
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

// The message was in flight to a peer that never posted a receive for it.
TEST_F(HostileQueue, MessageToAClientThatIsGoneFails) {
  TestSession survivor(daemon(), "survivor");
  TestQueue near(survivor);
  {
    TestSession victim(daemon(), "victim");
    TestQueue far(victim);
    ConnectPair(near, far);
    near.MustPost({SendRequest({}, v1::OP_FLAG_SILENT_SUCCESS, 1), WriteRequest({}, 0, 0, 0, 2)});
  }
  const v1::CqResultEx first = near.NextInitiator();
  EXPECT_EQ(first.result().request_context(), 1u);
  EXPECT_EQ(first.result().ntstatus(), kIoTimeout);
  const v1::CqResultEx second = near.NextInitiator();
  EXPECT_EQ(second.result().request_context(), 2u);
  EXPECT_EQ(second.result().ntstatus(), kCancelled);
  EXPECT_TRUE(near.DrainInitiator().empty());
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
