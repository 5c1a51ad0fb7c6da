#include "daemon/core/event_queue.h"

#include "daemon/core/core_fixture_test.h"

namespace rnicd::core {
namespace {

RequestCompleted CompletionOf(uint64_t context) { return RequestCompleted{.request_context = context}; }

TEST(EventQueue, EventsComeInOrderWithRisingSequenceNumbers) {
  EventQueue queue;
  queue.Push(CompletionOf(10));
  queue.Push(CompletionOf(20));
  const auto first = queue.Pop();
  const auto second = queue.Pop();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(std::get<RequestCompleted>(first->body).request_context, 10u);
  EXPECT_EQ(std::get<RequestCompleted>(second->body).request_context, 20u);
  EXPECT_EQ(first->sequence, 1u);
  EXPECT_EQ(second->sequence, 2u);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(EventQueue, TheLastEventIsTheLast) {
  EventQueue queue;
  queue.Push(CompletionOf(1));
  queue.Finish({EndCause::kEvicted});
  queue.Push(CompletionOf(2));
  queue.Finish({EndCause::kClosed});
  ASSERT_TRUE(queue.Pop().has_value());
  EXPECT_FALSE(queue.Drained());
  const auto last = queue.Pop();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(std::get<SessionEnding>(last->body).cause, EndCause::kEvicted);
  EXPECT_TRUE(queue.Drained());
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(EventQueue, AnEmptyQueueThatGoesOnIsNotDrained) {
  EventQueue queue;
  EXPECT_FALSE(queue.Drained());
}

TEST(EventQueue, ASecondStreamIsRefusedUntilTheFirstIsGone) {
  EventQueue queue;
  EXPECT_TRUE(queue.Attach([] {}));
  EXPECT_FALSE(queue.Attach([] {}));
  queue.Detach();
  EXPECT_TRUE(queue.Attach([] {}));
}

TEST(EventQueue, AttachingAndEveryEventWakesTheStream) {
  EventQueue queue;
  int wakes = 0;
  ASSERT_TRUE(queue.Attach([&] { ++wakes; }));
  EXPECT_EQ(wakes, 1);
  queue.Push(CompletionOf(1));
  queue.Finish({EndCause::kClosed});
  EXPECT_EQ(wakes, 3);
  queue.Push(CompletionOf(2));
  EXPECT_EQ(wakes, 3) << "nothing comes after the last event";
}

TEST(EventQueue, ADetachedStreamIsNotWokenAndLosesNothing) {
  EventQueue queue;
  int wakes = 0;
  ASSERT_TRUE(queue.Attach([&] { ++wakes; }));
  queue.Detach();
  queue.Push(CompletionOf(7));
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(std::get<RequestCompleted>(queue.Pop()->body).request_context, 7u);
}

TEST(EventQueue, TheWakeUpMayUseTheQueue) {
  EventQueue queue;
  int popped = 0;
  ASSERT_TRUE(queue.Attach([&] { popped += queue.Pop().has_value() ? 1 : 0; }));
  queue.Push(CompletionOf(1));
  EXPECT_EQ(popped, 1);
}

TEST(EventQueue, ACompletionIsChargedUntilItIsFetched) {
  const auto ledger = std::make_shared<Ledger>(Limits{}, nullptr);
  EventQueue queue;
  RequestCompleted completion = CompletionOf(1);
  completion.charge = std::make_shared<Charge>(*Charge::Take(ledger, Resource::kPendingRequests, 1));
  queue.Push(std::move(completion));
  EXPECT_EQ(ledger->used(Resource::kPendingRequests), 1u);
  (void)queue.Pop();
  EXPECT_EQ(ledger->used(Resource::kPendingRequests), 0u);
}

}  // namespace
}  // namespace rnicd::core
