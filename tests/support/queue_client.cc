#include "tests/support/queue_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/ndk/completion_reason.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// Context of a request that must be refused, so that a completion of it would be recognised.
constexpr uint64_t kRefusedContext = 0x7ef0'5ed0'7ef0'5ed0;

template <typename Request>
Request CloseRequest(bool allow_pending, uint64_t context) {
  Request request;
  request.set_allow_pending(allow_pending);
  request.set_request_context(context);
  return request;
}

// What holds for every completion: its reason is one of the list for its operation, and the reason's NTSTATUS is its
// own.
void ExpectReason(const v1::CqResultEx& completion) {
  const auto status = static_cast<NtStatus>(completion.result().ntstatus());
  const auto reason = static_cast<ErrorReason>(completion.result().reason());
  if (status == NtStatus::kSuccess) {
    EXPECT_EQ(completion.result().reason(), v1::ERROR_REASON_UNSPECIFIED) << completion.ShortDebugString();
    return;
  }
  EXPECT_EQ(RowOf(reason).ntstatus, status) << completion.ShortDebugString();
  const auto outcomes = AllCompletionOutcomes();
  EXPECT_TRUE(std::ranges::any_of(outcomes, [&](const CompletionOutcome& outcome) {
    return outcome.reason == reason && static_cast<int>(outcome.type) == static_cast<int>(completion.type());
  })) << completion.ShortDebugString();
}

}  // namespace

TestQueue::TestQueue(TestSession& session, const QueueOptions& options)
    : session_(session),
      initiator_cq_id_(CreateCq(session, options.cq_depth)),
      receive_cq_id_(CreateCq(session, options.cq_depth)) {
  v1::CreateQpRequest request;
  request.set_pd_id(session.pd_id());
  request.set_receive_cq_id(receive_cq_id_);
  request.set_initiator_cq_id(initiator_cq_id_);
  request.set_qp_context(options.qp_context);
  request.set_receive_queue_depth(options.receive_queue_depth);
  request.set_initiator_queue_depth(options.initiator_queue_depth);
  request.set_max_receive_request_sge(options.max_receive_request_sge);
  request.set_max_initiator_request_sge(options.max_initiator_request_sge);
  request.set_inline_data_size(options.inline_data_size);
  const auto created = session.Call(&QueueStub::CreateQp, request);
  ExpectOk(created);
  qp_id_ = created.response.qp_id();
  EXPECT_EQ(created.response.address(), Query().address());
}

v1::QueryQpResponse TestQueue::Query() {
  v1::QueryQpRequest request;
  request.set_qp_id(qp_id_);
  const auto queried = session_.Call(&QueueStub::QueryQp, request);
  ExpectOk(queried);
  return queried.response;
}

CallResult<v1::PostResponse> TestQueue::Post(const std::vector<v1::WorkRequest>& requests) {
  v1::PostRequest request;
  request.set_qp_id(qp_id_);
  request.mutable_requests()->Assign(requests.begin(), requests.end());
  return session_.Call(&QueueStub::Post, request);
}

v1::PostResponse TestQueue::MustPost(const std::vector<v1::WorkRequest>& requests) {
  const auto posted = Post(requests);
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), requests.size()) << posted.response.failure().ShortDebugString();
  EXPECT_FALSE(posted.response.has_failure());
  return posted.response;
}

void TestQueue::ExpectPostRefused(const v1::WorkRequest& request, ErrorReason reason, const std::string& field,
                                  Where where) {
  v1::WorkRequest recognisable = request;
  recognisable.set_request_context(kRefusedContext);
  const auto posted = Post({recognisable});
  if (!ExpectOk(posted, where)) {
    return;
  }
  if (posted.response.posted() != 0 || !posted.response.has_failure() || posted.response.issued_tokens_size() != 0) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the request was not refused: " << posted.response.ShortDebugString();
    return;
  }
  ExpectRefused(posted.response.failure(), reason, field.empty() ? "requests[0]" : "requests[0]." + field, where);
  for (const uint64_t cq_id : {initiator_cq_id_, receive_cq_id_}) {
    Fetch(cq_id);
    for (const v1::CqResultEx& completion : fetched_[cq_id]) {
      if (completion.result().request_context() == kRefusedContext) {
        ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
            << "a refused request completed: " << completion.ShortDebugString();
      }
    }
  }
}

v1::CqResultEx TestQueue::NextInitiator(Where where) { return Next(initiator_cq_id_, where); }

v1::CqResultEx TestQueue::NextReceive(Where where) { return Next(receive_cq_id_, where); }

std::vector<v1::CqResultEx> TestQueue::DrainInitiator() { return Drain(initiator_cq_id_); }

std::vector<v1::CqResultEx> TestQueue::DrainReceive() { return Drain(receive_cq_id_); }

v1::CqResultEx TestQueue::Run(const v1::WorkRequest& request, Where where) {
  const auto posted = Post({request});
  if (!posted.ok() || posted.response.posted() != 1) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the request was not posted: " << posted.message << " " << posted.response.ShortDebugString();
    return v1::CqResultEx();
  }
  return request.has_receive() ? NextReceive(where) : NextInitiator(where);
}

void TestQueue::MustRun(const v1::WorkRequest& request, Where where) {
  const v1::CqResultEx completion = Run(request, where);
  if (completion.result().ntstatus() != kStatusSuccess) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the request failed: " << completion.ShortDebugString() << " "
        << NtStatusName(static_cast<NtStatus>(completion.result().ntstatus()));
  }
}

v1::CqResultEx TestQueue::Next(uint64_t cq_id, Where where) {
  std::deque<v1::CqResultEx>& fetched = fetched_[cq_id];
  const bool came = Eventually([&] {
    if (fetched.empty()) {
      Fetch(cq_id);
    }
    return !fetched.empty();
  });
  if (!came) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << "no completion came";
    return v1::CqResultEx();
  }
  v1::CqResultEx completion = fetched.front();
  fetched.pop_front();
  return completion;
}

std::vector<v1::CqResultEx> TestQueue::Drain(uint64_t cq_id) {
  Fetch(cq_id);
  std::deque<v1::CqResultEx>& fetched = fetched_[cq_id];
  const std::vector<v1::CqResultEx> completions(fetched.begin(), fetched.end());
  fetched.clear();
  return completions;
}

void TestQueue::Fetch(uint64_t cq_id) {
  v1::GetCqResultsExRequest request;
  request.set_cq_id(cq_id);
  request.set_max_results(std::numeric_limits<uint32_t>::max());
  while (true) {
    const auto results = session_.Call(&QueueStub::GetCqResultsEx, request);
    if (!results.ok() || results.response.results_size() == 0) {
      return;
    }
    std::ranges::for_each(results.response.results(), ExpectReason);
    std::ranges::copy(results.response.results(), std::back_inserter(fetched_[cq_id]));
  }
}

CallResult<v1::ConnectQpResponse> Connect(TestQueue& queue, const std::string& peer_address) {
  v1::ConnectQpRequest request;
  request.set_qp_id(queue.qp_id());
  request.set_peer_address(peer_address);
  return queue.session().Call(&QueueStub::ConnectQp, request);
}

void ConnectPair(TestQueue& one, TestQueue& other) {
  ExpectOk(Connect(one, other.Query().address()));
  ExpectOk(Connect(other, one.Query().address()));
}

void WaitUntilConnected(TestQueue& queue, Where where) { queue.MustRun(WriteRequest({}, 0, 0), where); }

ConnectedPair::ConnectedPair(DaemonProcess& daemon, const QueueOptions& options)
    : near_session(daemon, "near"), far_session(daemon, "far"), near(near_session, options), far(far_session, options) {
  ConnectPair(near, far);
}

uint64_t FastRegion(TestSession& session, uint32_t pages, bool remote_access) {
  const uint64_t mr_id = session.CreateMr(true);
  const auto initialized = InitializeFast(session, mr_id, pages, remote_access);
  ExpectOk(initialized);
  EXPECT_EQ(initialized.response.ntstatus(), kStatusSuccess);
  return mr_id;
}

CallResult<v1::InitializeFastRegisterMrResponse> InitializeFast(TestSession& session, uint64_t mr_id, uint32_t pages,
                                                                bool remote_access, bool allow_pending,
                                                                uint64_t context) {
  v1::InitializeFastRegisterMrRequest request;
  request.set_mr_id(mr_id);
  request.set_adapter_page_count(pages);
  request.set_remote_access(remote_access);
  request.set_allow_pending(allow_pending);
  request.set_request_context(context);
  return session.Call(&MemoryStub::InitializeFastRegisterMr, request);
}

uint32_t PrivilegedToken(TestSession& session) {
  v1::GetPrivilegedMemoryRegionTokenRequest request;
  request.set_pd_id(session.pd_id());
  const auto got = session.Call(&QueueStub::GetPrivilegedMemoryRegionToken, request);
  ExpectOk(got);
  return got.response.privileged_token();
}

uint64_t CreateMw(TestSession& session) {
  v1::CreateMwRequest request;
  request.set_pd_id(session.pd_id());
  const auto created = session.Call(&QueueStub::CreateMw, request);
  ExpectOk(created);
  return created.response.mw_id();
}

CallResult<v1::GetRemoteTokenFromMwResponse> WindowToken(TestSession& session, uint64_t mw_id) {
  v1::GetRemoteTokenFromMwRequest request;
  request.set_mw_id(mw_id);
  return session.Call(&QueueStub::GetRemoteTokenFromMw, request);
}

uint64_t CreateCq(TestSession& session, uint32_t depth, uint64_t context) {
  v1::CreateCqRequest request;
  request.set_adapter_id(session.adapter_id());
  request.set_cq_depth(depth);
  request.set_cq_context(context);
  const auto created = session.Call(&QueueStub::CreateCq, request);
  ExpectOk(created);
  return created.response.cq_id();
}

CallResult<v1::ArmCqResponse> Arm(TestSession& session, uint64_t cq_id, v1::CqNotifyType type) {
  v1::ArmCqRequest request;
  request.set_cq_id(cq_id);
  request.set_type(type);
  return session.Call(&QueueStub::ArmCq, request);
}

CallResult<v1::CloseCqResponse> CloseCq(TestSession& session, uint64_t cq_id, bool allow_pending, uint64_t context) {
  auto request = CloseRequest<v1::CloseCqRequest>(allow_pending, context);
  request.set_cq_id(cq_id);
  return session.Call(&QueueStub::CloseCq, request);
}

CallResult<v1::CloseQpResponse> CloseQp(TestSession& session, uint64_t qp_id, bool allow_pending, uint64_t context) {
  auto request = CloseRequest<v1::CloseQpRequest>(allow_pending, context);
  request.set_qp_id(qp_id);
  return session.Call(&QueueStub::CloseQp, request);
}

CallResult<v1::CloseMwResponse> CloseMw(TestSession& session, uint64_t mw_id, bool allow_pending, uint64_t context) {
  auto request = CloseRequest<v1::CloseMwRequest>(allow_pending, context);
  request.set_mw_id(mw_id);
  return session.Call(&QueueStub::CloseMw, request);
}

}  // namespace rnicd::test
