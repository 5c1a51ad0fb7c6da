// GetCqResults with wait_ms: a call that waits for a completion, and clients that give up. The other ways in which a
// wait ends: daemon/core/queue/completion_queue_waits_test.cc.
#include <chrono>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "grpcpp/client_context.h"
#include "tests/support/calls/expect.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

using Polled = CallResult<v1::GetCqResultsResponse>;

constexpr uint32_t kLongestMs = 60'000;

v1::GetCqResultsRequest PollRequest(uint64_t cq_id, uint32_t wait_ms) {
  v1::GetCqResultsRequest request;
  request.set_cq_id(cq_id);
  request.set_max_results(16);
  request.set_wait_ms(wait_ms);
  return request;
}

Polled Poll(TestSession& session, uint64_t cq_id, uint32_t wait_ms) {
  return session.Call(&QueueStub::GetCqResults, PollRequest(cq_id, wait_ms));
}

// Contexts of the completions, in order.
std::vector<uint64_t> ContextsOf(const v1::GetCqResultsResponse& response) {
  std::vector<uint64_t> contexts;
  for (const v1::CqResult& result : response.results()) {
    contexts.push_back(result.request_context());
  }
  return contexts;
}

using Contexts = std::vector<uint64_t>;

class CompletionWait : public DaemonTest {
 protected:
  uint64_t cq() const { return pair_->near.initiator_cq_id(); }
  TestSession& session() { return pair_->near_session; }
  // Waits until so many calls wait in the daemon.
  void AwaitWaiting(uint64_t count) {
    EXPECT_TRUE(Eventually([&] { return session().Use("pending_requests").used() == count; }));
  }
  // Polls on a thread; returns when the call waits in the daemon, as the `count`th.
  std::future<Polled> Wait(uint64_t count = 1) {
    std::future<Polled> polled = std::async(std::launch::async, [this] { return Poll(session(), cq(), kLongestMs); });
    AwaitWaiting(count);
    return polled;
  }
  // A write of no bytes is executed whatever its token is.
  void Complete(uint64_t context) { pair_->near.MustPost({WriteRequest({}, 0, 0, 0, context)}); }
  void TearDown() override {
    pair_.reset();
    DaemonTest::TearDown();
  }

  std::optional<ConnectedPair> pair_{std::in_place, daemon()};
};

TEST_F(CompletionWait, EndsWithTheCompletion) {
  auto polled = Wait();
  Complete(7);
  const Polled answer = polled.get();
  ExpectOk(answer);
  EXPECT_EQ(ContextsOf(answer.response), Contexts{7});
  AwaitWaiting(0);
}

// A call with a context of its own, which waits.
class GivenUp : public CompletionWait {
 protected:
  std::future<CallOutcome> Begin(grpc::ClientContext& context) {
    return std::async(std::launch::async, [this, &context] {
      v1::GetCqResultsResponse response;
      return session().Call("/rnicd.v1.QueueService/GetCqResults", PollRequest(cq(), kLongestMs), &response, context);
    });
  }
  // What completes later is there for the next poll.
  void ExpectNothingIsLost() {
    AwaitWaiting(0);
    Complete(5);
    EXPECT_EQ(ContextsOf(Poll(session(), cq(), kLongestMs).response), Contexts{5});
  }
};

TEST_F(GivenUp, ByADeadlineTheWaitIsOver) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_EQ(Begin(context).get().code, grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectNothingIsLost();
}

TEST_F(GivenUp, ByTheClientTheWaitIsOver) {
  grpc::ClientContext context;
  auto polled = Begin(context);
  AwaitWaiting(1);
  context.TryCancel();
  EXPECT_EQ(polled.get().code, grpc::StatusCode::CANCELLED);
  ExpectNothingIsLost();
}

// More waits than the daemon has threads for calls.
TEST_F(CompletionWait, OccupiesNoThread) {
  constexpr uint64_t kWaits = 64;
  std::vector<std::future<Polled>> waits;
  for (uint64_t number = 1; number <= kWaits; ++number) {
    waits.push_back(Wait(number));
  }
  for (uint64_t number = 1; number <= kWaits; ++number) {
    Complete(number);
    EXPECT_EQ(ContextsOf(waits[number - 1].get().response), Contexts{number});
  }
}

}  // namespace
}  // namespace rnicd::test
