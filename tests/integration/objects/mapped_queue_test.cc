// Mapped completion queues over the wire: a client fetches the memory and the pipe by their tickets, and reads its
// completions without a call.
#include <poll.h>

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "ring/queue_end.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kContext = 0x99;

// A mapped queue, and what a client has after it fetched its descriptors.
class MappedQueueClient {
 public:
  explicit MappedQueueClient(TestSession& session) : session_(session), created_(Create(session)) {}

  uint64_t cq_id() const { return created_.cq_id(); }
  ring::QueueReader& reader() { return *reader_; }
  // True if a byte comes through the pipe.
  bool Announced() {
    pollfd waiting{.fd = pipe_.get(), .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, static_cast<int>(kTimeout.count())) == 1 && (waiting.revents & POLLIN) != 0;
  }
  // Posts receives to a queue pair of this queue, and flushes them.
  void Complete(uint64_t count) {
    v1::CreateQpRequest create;
    create.set_pd_id(session_.pd_id());
    create.set_receive_cq_id(cq_id());
    create.set_initiator_cq_id(cq_id());
    create.set_receive_queue_depth(static_cast<uint32_t>(count));
    const auto created = session_.Call(&QueueStub::CreateQp, create);
    ASSERT_TRUE(ExpectOk(created));
    v1::PostRequest post;
    post.set_qp_id(created.response.qp_id());
    for (uint64_t context = 0; context < count; ++context) {
      *post.add_requests() = ReceiveRequest({}, context);
    }
    EXPECT_EQ(session_.Call(&QueueStub::Post, post).response.posted(), count);
    v1::FlushRequest flush;
    flush.set_qp_id(created.response.qp_id());
    ExpectOk(session_.Call(&QueueStub::Flush, flush));
  }

 private:
  static v1::CreateCqResponse Create(TestSession& session) {
    v1::CreateCqRequest request;
    request.set_adapter_id(session.adapter_id());
    request.set_cq_depth(8);
    request.set_cq_context(kContext);
    request.set_mapped(true);
    const auto created = session.Call(&QueueStub::CreateCq, request);
    ExpectOk(created);
    return created.response;
  }

  TestSession& session_;
  const v1::CreateCqResponse created_;
  const UniqueFd pipe_ = session_.Fetch(created_.mapped().pipe_ticket());
  const UniqueFd memory_ = session_.Fetch(created_.mapped().memory_ticket());
  const SharedMapping mapping_{memory_.get(), created_.mapped().file_bytes()};
  absl::StatusOr<ring::QueueReader> reader_ = ring::QueueReader::Open(mapping_.bytes());
};

class MappedQueue : public DaemonTest {};

TEST_F(MappedQueue, CompletionsAndNotificationsComeThroughSharedMemory) {
  TestSession session(daemon());
  EventReader events(session);
  MappedQueueClient queue(session);
  ExpectOk(Arm(session, queue.cq_id(), v1::CQ_NOTIFY_TYPE_ANY));
  EXPECT_FALSE(queue.reader().PrepareToWait());
  queue.Complete(5);
  EXPECT_TRUE(queue.Announced());
  for (uint64_t context = 0; context < 5; ++context) {
    Completion completion;
    ASSERT_TRUE(Eventually([&] { return queue.reader().Poll(&completion); }));
    EXPECT_EQ(completion.request_context, context);
    EXPECT_EQ(completion.status, NtStatus::kCancelled);
    EXPECT_EQ(completion.reason, ErrorReason::REQUEST_FLUSHED);
  }
  EXPECT_EQ(queue.reader().notifications(), 1u);
  const auto event = events.Next();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->cq_notification().cq_id(), queue.cq_id());
  EXPECT_EQ(event->cq_notification().cq_context(), kContext);
}

TEST_F(MappedQueue, ACallTakesNoCompletions) {
  TestSession session(daemon());
  const MappedQueueClient queue(session);
  v1::GetCqResultsRequest request;
  request.set_cq_id(queue.cq_id());
  request.set_wait_ms(1);
  ExpectRefused(session.Call(&QueueStub::GetCqResults, request), ErrorReason::CQ_MAPPED, "cq_id");
  v1::GetCqResultsExRequest request_ex;
  request_ex.set_cq_id(queue.cq_id());
  ExpectRefused(session.Call(&QueueStub::GetCqResultsEx, request_ex), ErrorReason::CQ_MAPPED, "cq_id");
}

TEST_F(MappedQueue, TheEndOfTheSessionWakesItsClient) {
  TestSession session(daemon());
  MappedQueueClient queue(session);
  EXPECT_FALSE(queue.reader().PrepareToWait());
  ExpectOk(session.CloseSession());
  EXPECT_TRUE(queue.Announced());
  EXPECT_EQ(queue.reader().status(), static_cast<uint32_t>(NtStatus::kInvalidDeviceState));
}

}  // namespace
}  // namespace rnicd::test
