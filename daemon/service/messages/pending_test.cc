// Calls that are answered later, or at once and completed by an event, and those whose clients have given up.
#include "daemon/service/messages/pending.h"

#include "daemon/service/service_fixture_test.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::service {
namespace {

constexpr char kRegisterTwoPages[] =
    "mr_id: $mr mdl_chain { memory_id: $memory byte_count: 8192 virtual_address: 65536 } length: 8192";

class PendingCalls : public ServiceTest {
 protected:
  PendingCalls() : ServiceTest(core::SlowFromTwoPages()) {}

  // Begins a call of the client.
  std::shared_ptr<gate::FakeEnd> BeginText(std::string_view method, std::string_view text,
                                           std::shared_ptr<gate::Call>* begun = nullptr) {
    return Begin(client_.connection, method, *RequestOf(method, client_.Text(text)), begun);
  }
  template <typename Response>
  static Response Parsed(const std::string& bytes) {
    Response response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return response;
  }

  Household client_{world_, 1};
};

TEST_F(PendingCalls, ThatMayPendAreAnsweredAtOnceAndReportedOnTheStream) {
  std::shared_ptr<gate::Call> watch;
  const auto stream = BeginText("SessionService.WatchEvents", "", &watch);
  EXPECT_EQ(stream->written().size(), 1u) << "the notification of the completion queue";
  stream->LetGo();
  {
    const core::BusyWorkers busy(*world_.workers, 2);
    const auto answer =
        Must<v1::RegisterMrResponse>(client_, "MemoryService.RegisterMr",
                                     std::string(kRegisterTwoPages) + " allow_pending: true request_context: 77");
    EXPECT_EQ(answer.ntstatus(), static_cast<uint32_t>(NtStatus::kPending));
    EXPECT_FALSE(answer.has_registration());
    EXPECT_EQ(observer_.decisions().back().note, "pending");
    EXPECT_EQ(stream->written().size(), 1u);
  }
  ASSERT_TRUE(Eventually([&] { return stream->written().size() == 2; }));
  const auto event = Parsed<v1::WatchEventsResponse>(stream->written()[1]);
  EXPECT_EQ(event.sequence(), Parsed<v1::WatchEventsResponse>(stream->written()[0]).sequence() + 1);
  const v1::RequestCompleted& completed = event.request_completed();
  EXPECT_EQ(completed.kind(), v1::REQUEST_KIND_REGISTER_MR);
  EXPECT_EQ(completed.request_context(), 77u);
  EXPECT_EQ(std::to_string(completed.object_id()), client_["$mr"]);
  EXPECT_EQ(completed.ntstatus(), static_cast<uint32_t>(NtStatus::kSuccess));
  EXPECT_EQ(completed.registration().length(), 8192u);
  watch->Cancel();
}

TEST_F(PendingCalls, ThatMayNotPendAreAnsweredWhenTheyAreDone) {
  client_.owner.NextEvent<core::CqNotified>();
  std::shared_ptr<gate::FakeEnd> call;
  {
    const core::BusyWorkers busy(*world_.workers, 2);
    call = BeginText("MemoryService.RegisterMr", kRegisterTwoPages);
    EXPECT_EQ(call->times(), 0);
  }
  const auto answer = Parsed<v1::RegisterMrResponse>(call->Get()->response);
  EXPECT_EQ(answer.ntstatus(), static_cast<uint32_t>(NtStatus::kSuccess));
  EXPECT_EQ(answer.registration().length(), 8192u);
  EXPECT_TRUE(client_.owner.HasNoEvent());
}

// Their ids never reach the client.
TEST_F(PendingCalls, ThatMadeSomethingDropItWhenTheirClientHasGivenUp) {
  const std::pair<std::string_view, std::string_view> calls[] = {
      {"MemoryService.AllocateMemory", "size: 8192"},
      {"MemoryService.BatchAllocateMemory", "items { size: 8192 } items { size: 8192 }"},
      {"MemoryService.ProvisionMemory",
       "memory_id: $memory pd_id: $pd items { length: 8192 virtual_address: 65536 } items { length: 8192 "
       "byte_offset: 8192 virtual_address: 65536 }"}};
  const std::string held = world_.Held();
  for (const auto& [method, text] : calls) {
    SCOPED_TRACE(method);
    std::shared_ptr<gate::FakeEnd> end;
    std::shared_ptr<gate::Call> call;
    {
      const core::BusyWorkers busy(*world_.workers, 2);
      end = BeginText(method, text, &call);
      EXPECT_EQ(end->times(), 0);
      call->Cancel();
    }
    EXPECT_EQ(end->Code(), absl::StatusCode::kCancelled);
    EXPECT_TRUE(Eventually([&] { return world_.Held() == held; })) << world_.Held();
  }
}

TEST_F(PendingCalls, OfAPollEndWithACompletionAndLoseNoneWhenTheirClientHasGivenUp) {
  const auto results = [](const std::string& bytes) { return Parsed<v1::GetCqResultsResponse>(bytes).results_size(); };
  const std::string wait = "cq_id: $cq max_results: 4 wait_ms: 10000";
  const QueuePairId connected{std::stoull(client_["$connected"])};
  EXPECT_EQ(results(BeginText("QueueService.GetCqResults", wait)->Get()->response), 1) << "there is one already";
  const auto waiting = BeginText("QueueService.GetCqResults", wait);
  EXPECT_EQ(waiting->times(), 0);
  client_.owner.MustPost(connected, {core::Write({}, 0, {})});
  EXPECT_EQ(results(waiting->Get()->response), 1);
  const auto waiting_for_types = BeginText("QueueService.GetCqResultsEx", wait);
  EXPECT_EQ(waiting_for_types->times(), 0);
  client_.owner.MustPost(connected, {core::Write({}, 0, {})});
  const auto typed = Parsed<v1::GetCqResultsExResponse>(waiting_for_types->Get()->response);
  ASSERT_EQ(typed.results_size(), 1);
  EXPECT_EQ(typed.results(0).type(), v1::OPERATION_TYPE_WRITE);
  std::shared_ptr<gate::Call> call;
  const auto given_up = BeginText("QueueService.GetCqResults", wait, &call);
  call->Cancel();
  EXPECT_EQ(given_up->Code(), absl::StatusCode::kCancelled);
  client_.owner.MustPost(connected, {core::Write({}, 0, {})});
  EXPECT_EQ(results(BeginText("QueueService.GetCqResults", wait)->Get()->response), 1);
}

TEST_F(PendingCalls, ASecondEventStreamIsRefusedAndTheFirstGoesOn) {
  std::shared_ptr<gate::Call> watch;
  const auto stream = BeginText("SessionService.WatchEvents", "", &watch);
  ExpectRefusal(*BeginText("SessionService.WatchEvents", "")->Get(), ErrorReason::EVENT_STREAM_ALREADY_OPEN, "");
  stream->LetGo();
  world_.End(client_.owner.session);
  ASSERT_EQ(stream->written().size(), 2u);
  EXPECT_EQ(Parsed<v1::WatchEventsResponse>(stream->written()[1]).session_ending().cause(), "closed");
  stream->LetGo();
  EXPECT_EQ(stream->Code(), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace rnicd::service
