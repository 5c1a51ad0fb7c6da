// Limits on queues, queue pairs, windows, mappings and fast regions: each is refused at its limit with its figures,
// charges nothing when it refuses, and what is given back can be had again.
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

void ExpectFigures(const CallOutcome& refused, ErrorReason reason, uint64_t limit, uint64_t used, uint64_t requested,
                   Where where = Where::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "these figures");
  ExpectRefused(refused, reason);
  EXPECT_EQ(refused.detail.limit(), limit);
  EXPECT_EQ(refused.detail.used(), used);
  EXPECT_EQ(refused.detail.requested(), requested);
}

CallResult<v1::CreateCqResponse> TryCreateCq(TestSession& session, uint32_t depth) {
  v1::CreateCqRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::CreateCq, request);
}

CallResult<v1::ResizeCqResponse> Resize(TestSession& session, uint64_t cq_id, uint32_t depth) {
  v1::ResizeCqRequest request;
  request.set_cq_id(cq_id);
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::ResizeCq, request);
}

CallResult<v1::CreateQpResponse> TryCreateQp(TestSession& session, uint64_t cq_id, uint32_t receive_depth,
                                             uint32_t initiator_depth) {
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(cq_id);
  request.set_initiator_cq_id(cq_id);
  request.set_receive_queue_depth(receive_depth);
  request.set_initiator_queue_depth(initiator_depth);
  return session.Call(&QueueStub::CreateQp, request);
}

CallResult<v1::CreateMwResponse> TryCreateMw(TestSession& session) {
  v1::CreateMwRequest request;
  request.set_pd_id(session.pd_id());
  return session.Call(&QueueStub::CreateMw, request);
}

CallResult<v1::BuildLamResponse> TryBuildLam(TestSession& session, uint64_t memory_id) {
  v1::BuildLamRequest request;
  request.set_adapter_id(session.adapter_id());
  *request.add_mdl_chain() = MdlEntry(memory_id, 0, kPage, kBase);
  request.set_length(kPage);
  return session.Call(&MemoryStub::BuildLam, request);
}

CallResult<v1::ReleaseLamResponse> ReleaseLam(TestSession& session, uint64_t lam_id) {
  v1::ReleaseLamRequest request;
  request.set_lam_id(lam_id);
  return session.Call(&MemoryStub::ReleaseLam, request);
}

class QueueQuotas : public DaemonTest {
 protected:
  QueueQuotas()
      : DaemonTest({"--max_logical_mappings_per_session=2", "--max_fast_register_pages_per_session=32",
                    "--max_completion_queues_per_session=3", "--max_cq_entries_per_session=100",
                    "--max_queue_pairs_per_session=2", "--max_queue_entries_per_session=64",
                    "--max_windows_per_session=2", "--max_posted_pages_per_session=4"}) {}
};

TEST_F(QueueQuotas, LimitsAreReported) {
  TestSession session(daemon());
  EXPECT_EQ(session.Use("logical_mappings").limit(), 2u);
  EXPECT_EQ(session.Use("fast_register_pages").limit(), 32u);
  EXPECT_EQ(session.Use("completion_queues").limit(), 3u);
  EXPECT_EQ(session.Use("cq_entries").limit(), 100u);
  EXPECT_EQ(session.Use("queue_pairs").limit(), 2u);
  EXPECT_EQ(session.Use("queue_entries").limit(), 64u);
  EXPECT_EQ(session.Use("windows").limit(), 2u);
  EXPECT_EQ(session.Use("posted_pages").limit(), 4u);
}

TEST_F(QueueQuotas, LogicalMappings) {
  TestSession session(daemon());
  const uint64_t memory = session.SealedMemory(kPage);
  const auto first = TryBuildLam(session, memory);
  ExpectOk(first);
  ExpectOk(TryBuildLam(session, memory));
  const uint64_t pinned = session.Use("pinned_bytes").used();
  ExpectFigures(TryBuildLam(session, memory), ErrorReason::QUOTA_LOGICAL_MAPPINGS, 2, 2, 1);
  EXPECT_EQ(session.Use("pinned_bytes").used(), pinned);
  ExpectOk(ReleaseLam(session, first.response.lam_id()));
  EXPECT_EQ(session.Use("logical_mappings").used(), 1u);
  ExpectOk(TryBuildLam(session, memory));
}

// Charged when the region is initialized, for as many pages as it may ever take.
TEST_F(QueueQuotas, FastRegisterPages) {
  TestSession session(daemon());
  const uint64_t first = session.CreateMr(true);
  const uint64_t second = session.CreateMr(true);
  EXPECT_EQ(session.Use("fast_register_pages").used(), 0u);
  ExpectFigures(InitializeFast(session, first, 33, true), ErrorReason::QUOTA_FAST_REGISTER_PAGES, 32, 0, 33);
  ExpectOk(InitializeFast(session, first, 20, true));
  ExpectFigures(InitializeFast(session, second, 13, true), ErrorReason::QUOTA_FAST_REGISTER_PAGES, 32, 20, 13);
  // A refusal leaves the region as it was.
  ExpectOk(InitializeFast(session, second, 12, false));
  EXPECT_EQ(session.Use("fast_register_pages").used(), 32u);
  ExpectOk(session.CloseMr(first));
  EXPECT_EQ(session.Use("fast_register_pages").used(), 12u);
  ExpectOk(InitializeFast(session, session.CreateMr(true), 20, true));
}

TEST_F(QueueQuotas, CompletionQueues) {
  TestSession session(daemon());
  const uint64_t first = CreateCq(session, 1);
  CreateCq(session, 1);
  CreateCq(session, 1);
  ExpectFigures(TryCreateCq(session, 1), ErrorReason::QUOTA_COMPLETION_QUEUES, 3, 3, 1);
  EXPECT_EQ(session.Use("cq_entries").used(), 3u);
  ExpectOk(CloseCq(session, first));
  EXPECT_EQ(session.Use("completion_queues").used(), 2u);
  ExpectOk(TryCreateCq(session, 1));
}

TEST_F(QueueQuotas, CqEntries) {
  TestSession session(daemon());
  ExpectFigures(TryCreateCq(session, 101), ErrorReason::QUOTA_CQ_ENTRIES, 100, 0, 101);
  EXPECT_EQ(session.Use("completion_queues").used(), 0u);
  const uint64_t first = CreateCq(session, 60);
  ExpectFigures(TryCreateCq(session, 41), ErrorReason::QUOTA_CQ_ENTRIES, 100, 60, 41);
  const uint64_t second = CreateCq(session, 40);
  EXPECT_EQ(session.Use("cq_entries").used(), 100u);
  ExpectOk(CloseCq(session, first));
  EXPECT_EQ(session.Use("cq_entries").used(), 40u);
  ExpectOk(TryCreateCq(session, 60));
  ExpectOk(CloseCq(session, second));
}

// A queue is charged for the depth it has, so one can grow up to the limit, and shrink also when all is in use.
TEST_F(QueueQuotas, ResizedCqEntries) {
  TestSession session(daemon());
  const uint64_t first = CreateCq(session, 60);
  const uint64_t second = CreateCq(session, 20);
  const auto refused = Resize(session, second, 41);
  ExpectRefused(refused, ErrorReason::QUOTA_CQ_ENTRIES);
  EXPECT_EQ(refused.detail.limit(), 100u);
  EXPECT_EQ(session.Use("cq_entries").used(), 80u);
  ExpectOk(Resize(session, second, 40));
  EXPECT_EQ(session.Use("cq_entries").used(), 100u);
  ExpectOk(Resize(session, first, 10));
  EXPECT_EQ(session.Use("cq_entries").used(), 50u);
  ExpectOk(Resize(session, second, 90));
}

TEST_F(QueueQuotas, QueuePairs) {
  TestSession session(daemon());
  const uint64_t cq = CreateCq(session, 16);
  const auto first = TryCreateQp(session, cq, 4, 4);
  ExpectOk(first);
  ExpectOk(TryCreateQp(session, cq, 4, 4));
  ExpectFigures(TryCreateQp(session, cq, 4, 4), ErrorReason::QUOTA_QUEUE_PAIRS, 2, 2, 1);
  EXPECT_EQ(session.Use("queue_entries").used(), 16u);
  ExpectOk(CloseQp(session, first.response.qp_id()));
  EXPECT_EQ(session.Use("queue_pairs").used(), 1u);
  ExpectOk(TryCreateQp(session, cq, 4, 4));
}

// Both queues of a pair count.
TEST_F(QueueQuotas, QueueEntries) {
  TestSession session(daemon());
  const uint64_t cq = CreateCq(session, 16);
  ExpectFigures(TryCreateQp(session, cq, 32, 33), ErrorReason::QUOTA_QUEUE_ENTRIES, 64, 0, 65);
  EXPECT_EQ(session.Use("queue_pairs").used(), 0u);
  const auto first = TryCreateQp(session, cq, 10, 30);
  ExpectOk(first);
  ExpectFigures(TryCreateQp(session, cq, 20, 5), ErrorReason::QUOTA_QUEUE_ENTRIES, 64, 40, 25);
  ExpectOk(TryCreateQp(session, cq, 20, 4));
  EXPECT_EQ(session.Use("queue_entries").used(), 64u);
  ExpectOk(CloseQp(session, first.response.qp_id()));
  EXPECT_EQ(session.Use("queue_entries").used(), 24u);
  ExpectOk(TryCreateQp(session, cq, 40, 0));
}

TEST_F(QueueQuotas, Windows) {
  TestSession session(daemon());
  const uint64_t first = CreateMw(session);
  CreateMw(session);
  ExpectFigures(TryCreateMw(session), ErrorReason::QUOTA_WINDOWS, 2, 2, 1);
  ExpectOk(CloseMw(session, first));
  EXPECT_EQ(session.Use("windows").used(), 1u);
  ExpectOk(TryCreateMw(session));
}

// A page list is held from the post to the end of the registration, so it counts as long.
TEST_F(QueueQuotas, PostedPages) {
  TestSession session(daemon());
  TestMemory memory(session, 4 * kPage);
  TestQueue queue(session, {.cq_depth = 16, .receive_queue_depth = 8, .initiator_queue_depth = 8});
  ExpectOk(Connect(queue, queue.Query().address()));
  const uint64_t first = FastRegion(session, 4);
  const uint64_t second = FastRegion(session, 4);
  queue.MustRun(FastRegisterRequest(first, memory.Pages(0, 3), 3 * kPage, kBase, 0));
  const v1::WorkRequest two_more = FastRegisterRequest(second, memory.Pages(0, 2), 2 * kPage, kBase, 0);
  const auto refused = queue.Post({two_more});
  ExpectOk(refused);
  ExpectRefused(refused.response.failure(), ErrorReason::QUOTA_POSTED_PAGES, "requests[0]");
  EXPECT_EQ(refused.response.failure().limit(), 4u);
  EXPECT_EQ(refused.response.failure().used(), 3u);
  EXPECT_EQ(refused.response.failure().requested(), 2u);
  queue.MustRun(InvalidateMrRequest(first));
  EXPECT_EQ(session.Use("posted_pages").used(), 0u);
  queue.MustRun(two_more);
}

// The pieces of memory behind an SGE with the privileged token count likewise, until its request is complete.
TEST_F(QueueQuotas, PiecesBehindLogicalAddresses) {
  TestSession session(daemon());
  TestMemory memory(session, kPage);
  TestQueue queue(session, {.cq_depth = 16, .receive_queue_depth = 8, .initiator_queue_depth = 8});
  const v1::WorkRequest receive = ReceiveRequest({Sge(memory.Pages(0, 1)[0], 64, PrivilegedToken(session))});
  const auto posted = queue.Post({receive, receive, receive, receive, receive});
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), 4u);
  ExpectRefused(posted.response.failure(), ErrorReason::QUOTA_POSTED_PAGES, "requests[4]");
  ExpectOk(CloseQp(session, queue.qp_id()));
  EXPECT_EQ(session.Use("posted_pages").used(), 0u);
}

// What no limit could ever allow is not reported as a limit that some closing would help against.
TEST_F(QueueQuotas, ArgumentsAreJudgedBeforeLimits) {
  TestSession session(daemon());
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const uint64_t cq = CreateCq(session, 16);
  ExpectRefused(TryCreateCq(session, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(Resize(session, cq, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "cq_depth");
  ExpectRefused(TryCreateQp(session, cq, kMost, 1), ErrorReason::ABOVE_ADAPTER_LIMIT, "receive_queue_depth");
  ExpectRefused(TryCreateQp(session, cq, 1, kMost), ErrorReason::ABOVE_ADAPTER_LIMIT, "initiator_queue_depth");
}

// One session's limits are no other's.
TEST_F(QueueQuotas, AreOfEachSession) {
  TestSession first(daemon());
  TestSession second(daemon());
  CreateCq(first, 100);
  CreateCq(second, 100);
  CreateMw(first);
  CreateMw(first);
  CreateMw(second);
  EXPECT_EQ(Used(AdminStatus(daemon()), "cq_entries"), 200u);
  EXPECT_EQ(Used(AdminStatus(daemon()), "windows"), 3u);
}

}  // namespace
}  // namespace rnicd::test
