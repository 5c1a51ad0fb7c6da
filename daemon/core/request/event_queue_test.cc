#include "daemon/core/request/event_queue.h"

#include <deque>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

RequestCompleted CompletionOf(uint64_t context) { return RequestCompleted{.request_context = context}; }

// A source with a scripted event for each TakeEvent.
class ScriptedSource final : public EventSource {
 public:
  explicit ScriptedSource(std::deque<Taken> answers) : answers_(std::move(answers)) {}

  Taken TakeEvent() override {
    ++asked_;
    if (answers_.empty()) {
      return {};
    }
    Taken answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  int asked() const { return asked_; }

 private:
  std::deque<Taken> answers_;
  int asked_ = 0;
};

EventSource::Taken Says(uint64_t context, bool again = false) {
  return {.body = CqNotified{.context = context}, .again = again};
}
std::shared_ptr<ScriptedSource> SourceOf(std::deque<EventSource::Taken> answers) {
  return std::make_shared<ScriptedSource>(std::move(answers));
}

// All queued events, as "sequence:context ..."; the last event has no context.
std::string Drain(EventQueue& queue) {
  std::string all;
  while (const auto event = queue.Pop()) {
    all += std::to_string(event->sequence) + ":";
    if (const auto* notified = std::get_if<CqNotified>(&event->body)) {
      all += std::to_string(notified->context);
    } else if (const auto* completed = std::get_if<RequestCompleted>(&event->body)) {
      all += std::to_string(completed->request_context);
    } else {
      all += "end";
    }
    all += " ";
  }
  return all;
}

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

TEST(EventQueue, WhatWaitsWhenTheSessionEndsIsNoLongerCharged) {
  const auto ledger = std::make_shared<Ledger>(Limits{}, nullptr);
  EventQueue queue;
  RequestCompleted completion = CompletionOf(1);
  completion.charge = std::make_shared<Charge>(*Charge::Take(ledger, Resource::kPendingRequests, 1));
  queue.Push(std::move(completion));
  queue.PushSource(SourceOf({Says(2)}));
  queue.Finish({EndCause::kClosed});
  EXPECT_EQ(ledger->used(Resource::kPendingRequests), 0u);
  EXPECT_EQ(Drain(queue), "1:1 2:2 3:end ") << "it can still be fetched";
}

TEST(EventQueue, ASourcesEventIsMadeWhenItIsFetched) {
  EventQueue queue;
  const auto source = SourceOf({Says(7)});
  queue.PushSource(source);
  EXPECT_EQ(source->asked(), 0);
  EXPECT_EQ(Drain(queue), "1:7 ");
  EXPECT_EQ(source->asked(), 1);
}

TEST(EventQueue, ASourceWithNothingToSayLeavesNoHoleInTheNumbers) {
  EventQueue queue;
  queue.Push(CompletionOf(1));
  queue.PushSource(SourceOf({}));
  queue.PushSource(SourceOf({Says(2)}));
  queue.PushSource(SourceOf({}));
  queue.Push(CompletionOf(3));
  EXPECT_EQ(Drain(queue), "1:1 2:2 3:3 ");
}

TEST(EventQueue, ASourceWithMoreToSayGoesToTheEnd) {
  EventQueue queue;
  queue.PushSource(SourceOf({Says(1, /*again=*/true), Says(2)}));
  queue.Push(CompletionOf(10));
  EXPECT_EQ(Drain(queue), "1:1 2:10 3:2 ");
}

TEST(EventQueue, ASourceThatIsEmptyNowCanBePushedAgainLater) {
  EventQueue queue;
  queue.PushSource(SourceOf({{.body = std::nullopt, .again = true}, Says(1)}));
  EXPECT_EQ(Drain(queue), "1:1 ");
}

TEST(EventQueue, ASourceWithMoreToSayStaysBeforeTheLastEvent) {
  EventQueue queue;
  queue.PushSource(SourceOf({Says(1, /*again=*/true), Says(2)}));
  queue.Finish({EndCause::kClosed});
  EXPECT_EQ(Drain(queue), "1:1 2:2 3:end ");
  EXPECT_TRUE(queue.Drained());
}

TEST(EventQueue, WithdrawingForgetsThatSourceAndNoOther) {
  EventQueue queue;
  const auto first = SourceOf({Says(1)});
  const auto second = SourceOf({Says(2)});
  queue.PushSource(first);
  queue.PushSource(second);
  queue.Push(CompletionOf(3));
  queue.Withdraw(*first);
  EXPECT_EQ(Drain(queue), "1:2 2:3 ");
  EXPECT_EQ(first->asked(), 0);
}

TEST(EventQueue, WithdrawingWhatNeverWaitedChangesNothing) {
  EventQueue queue;
  queue.Push(CompletionOf(1));
  queue.Withdraw(*SourceOf({}));
  EXPECT_EQ(Drain(queue), "1:1 ");
}

TEST(EventQueue, ASourceWakesTheStreamAndIsReleasedAfterItsEvent) {
  EventQueue queue;
  int wakes = 0;
  ASSERT_TRUE(queue.Attach([&] { ++wakes; }));
  std::weak_ptr<ScriptedSource> watched;
  {
    auto source = SourceOf({Says(1)});
    watched = source;
    queue.PushSource(std::move(source));
  }
  EXPECT_EQ(wakes, 2);
  EXPECT_FALSE(watched.expired()) << "the queue keeps it until its event is fetched";
  (void)queue.Pop();
  EXPECT_TRUE(watched.expired());
}

TEST(EventQueue, AfterTheLastEventNoSourceIsTaken) {
  EventQueue queue;
  queue.Finish({EndCause::kClosed});
  const auto source = SourceOf({Says(1)});
  queue.PushSource(source);
  EXPECT_EQ(Drain(queue), "1:end ");
  EXPECT_EQ(source.use_count(), 1);
}

}  // namespace
}  // namespace rnicd::core
