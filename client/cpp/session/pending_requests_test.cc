#include "client/cpp/session/pending_requests.h"

#include <atomic>
#include <thread>

#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

v1::RequestCompleted EventFor(uint64_t context) {
  v1::RequestCompleted event;
  event.set_request_context(context);
  return event;
}

TEST(PendingRequests, EventRunsItsCompletionOnce) {
  PendingRequests pending;
  int runs = 0;
  const auto context = pending.Add([&runs](const auto& completed) { runs += completed.ok() ? 1 : 100; });
  ASSERT_TRUE(context.ok());
  pending.Complete(EventFor(*context));
  pending.Complete(EventFor(*context));
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(pending.Take(*context).has_value());
}

TEST(PendingRequests, UnknownContextIsIgnored) {
  PendingRequests pending;
  pending.Complete(EventFor(77));
  EXPECT_FALSE(pending.Take(77).has_value());
}

TEST(PendingRequests, CloseFailsWhatWaitsAndWhatComesLater) {
  PendingRequests pending;
  absl::Status seen;
  ASSERT_TRUE(pending.Add([&seen](const auto& completed) { seen = completed.status(); }).ok());
  pending.Close(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  pending.Close(MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_EQ(seen, MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  EXPECT_EQ(pending.Add([](const auto&) {}).status(), seen);
}

TEST(PendingRequests, CompletionMayAddTheNextRequest) {
  PendingRequests pending;
  absl::StatusOr<uint64_t> second;
  const auto first = pending.Add([&](const auto&) { second = pending.Add([](const auto&) {}); });
  pending.Complete(EventFor(*first));
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, *first);
}

TEST(PendingRequests, RacingEventReplyAndCloseRunEachCompletionOnce) {
  for (int round = 0; round < 200; ++round) {
    PendingRequests pending;
    std::atomic<int> runs = 0;
    const auto context = pending.Add([&runs](const auto&) { ++runs; });
    std::thread event([&] { pending.Complete(EventFor(*context)); });
    std::thread close([&] { pending.Close(MakeError(ErrorReason::SESSION_ENDING)); });
    if (const auto taken = pending.Take(*context)) {
      (*taken)(EventFor(*context));
    }
    event.join();
    close.join();
    ASSERT_EQ(runs, 1);
  }
}

}  // namespace
}  // namespace rnicd::inline client
