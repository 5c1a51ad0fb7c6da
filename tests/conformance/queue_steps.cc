#include "tests/conformance/queue_steps.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/process/tested_provider.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

RegisteredMemory::RegisteredMemory(TestSession& session, uint64_t size, uint32_t mr_flags)
    : RegisteredMemory(session, size, size, mr_flags) {}

RegisteredMemory::RegisteredMemory(TestSession& session, uint64_t size, uint64_t length, uint32_t mr_flags)
    : memory(session, size),
      mr_id(session.CreateMr()),
      registration(session.RegisterWhole(mr_id, memory.id(), length, mr_flags)) {}

v1::Sge RegisteredMemory::Piece(uint64_t offset, uint32_t length) const {
  return Sge(kBase + offset, length, registration.local_token());
}

uint64_t LogicalAddressOf(TestMemory& memory, uint64_t offset) {
  const std::vector<uint64_t> page = memory.Pages(offset / kPage, 1);
  return page.empty() ? 0 : page.front() + offset % kPage;
}

void ExpectCompletion(const v1::CqResultEx& completion, NtStatus status, uint64_t context, Where where) {
  const v1::CqResult& result = completion.result();
  if (result.ntstatus() != static_cast<uint32_t>(status) || result.request_context() != context) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the completion has status " << NtStatusName(static_cast<NtStatus>(result.ntstatus())) << " and context "
        << result.request_context() << ", expected " << NtStatusName(status) << " and " << context
        << "; got: " << completion.ShortDebugString();
  }
}

void ExpectInError(TestQueue& queue, Where where) {
  if (!Eventually([&] { return queue.Query().state() == v1::QP_STATE_ERROR; })) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "the queue pair does not go to the error state";
  }
}

v1::NdkAdapterInfo AdapterInfo(TestSession& session) {
  v1::QueryAdapterInfoRequest request;
  request.set_adapter_id(session.adapter_id());
  const auto queried = session.Call(&AdapterStub::QueryAdapterInfo, request);
  ExpectOk(queried);
  return queried.response.info();
}

CallResult<v1::FlushResponse> Flush(TestQueue& queue) {
  v1::FlushRequest request;
  request.set_qp_id(queue.qp_id());
  return queue.session().Call(&QueueStub::Flush, request);
}

CallResult<v1::DisconnectQpResponse> Disconnect(TestQueue& queue) {
  v1::DisconnectQpRequest request;
  request.set_qp_id(queue.qp_id());
  return queue.session().Call(&QueueStub::DisconnectQp, request);
}

std::vector<std::string> AdapterFlagsWithout(uint32_t adapter_flag) {
  return {ProviderFlag("adapter_flags", AdapterFlagsUnderTest() & ~adapter_flag)};
}

CallResult<v1::ResizeCqResponse> Resize(TestSession& session, uint64_t cq_id, uint32_t depth) {
  v1::ResizeCqRequest request;
  request.set_cq_id(cq_id);
  request.set_cq_depth(depth);
  return session.Call(&QueueStub::ResizeCq, request);
}

CallResult<v1::GetCqResultsResponse> Results(TestSession& session, uint64_t cq_id, uint32_t max_results) {
  v1::GetCqResultsRequest request;
  request.set_cq_id(cq_id);
  request.set_max_results(max_results);
  return session.Call(&QueueStub::GetCqResults, request);
}

CallResult<v1::GetCqResultsExResponse> ResultsEx(TestSession& session, uint64_t cq_id, uint32_t max_results) {
  v1::GetCqResultsExRequest request;
  request.set_cq_id(cq_id);
  request.set_max_results(max_results);
  return session.Call(&QueueStub::GetCqResultsEx, request);
}

void QueueUp(TestSession& session, uint64_t cq_id, uint64_t first, uint64_t last) {
  v1::CreateQpRequest create;
  create.set_pd_id(session.pd_id());
  create.set_receive_cq_id(cq_id);
  create.set_initiator_cq_id(cq_id);
  create.set_qp_context(QueueOptions().qp_context);
  create.set_receive_queue_depth(static_cast<uint32_t>(last - first + 1));
  const auto created = session.Call(&QueueStub::CreateQp, create);
  ExpectOk(created);
  v1::PostRequest post;
  post.set_qp_id(created.response.qp_id());
  for (uint64_t context = first; context <= last; ++context) {
    *post.add_requests() = ReceiveRequest({}, context);
  }
  const auto posted = session.Call(&QueueStub::Post, post);
  ExpectOk(posted);
  EXPECT_EQ(posted.response.posted(), last - first + 1);
  const auto closed = CloseQp(session, created.response.qp_id());
  ExpectOk(closed);
  EXPECT_EQ(closed.response.ntstatus(), kStatusSuccess);
}

v1::WorkRequest Tick(uint64_t context, uint32_t flags) { return WriteRequest({}, 0, 0, flags, context); }

}  // namespace rnicd::test
