// The C++ library's completion queues: what is polled, what is waited for, and who is woken.
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

// A completion queue, and a queue pair connected to itself that completes on it.
struct Loop {
  explicit Loop(const Client& client)
      : queue(Must(CompletionQueue::Create(client, 16))), pair(Must(QueuePair::Create(queue, queue, {}))) {
    EXPECT_TRUE(pair.Connect(pair.address()).ok());
  }
  // One completion with this context.
  void Complete(uint64_t context) {
    EXPECT_EQ(Must(pair.Post(WorkChain().Write({}, {}, {.context = context}))).posted, 1u);
  }

  // Posts a send and returns after its completion is in the queue.
  void CompleteNow(uint64_t context) {
    EXPECT_TRUE(queue.Arm(CqNotifyType::kAny).ok());
    Complete(context);
    EXPECT_TRUE(Must(queue.WaitForNotification(kTimeout)));
  }

  CompletionQueue queue;
  QueuePair pair;
};

class LibrnicdCompletions : public Librnicd {};

TEST_F(LibrnicdCompletions, AreNotLostToAQueueThatShrinks) {
  const Client client = MustConnect();
  Loop loop(client);
  loop.CompleteNow(1);
  loop.CompleteNow(2);
  EXPECT_TRUE(FailedWith(loop.queue.Resize(1), ErrorReason::CQ_BACKLOG));
  EXPECT_TRUE(loop.queue.Resize(2).ok());
  EXPECT_EQ(Must(loop.queue.Poll(16)).size(), 2u);
}

TEST_F(LibrnicdCompletions, ArePolledUpToTheNumberAskedForInOrder) {
  const Client client = MustConnect();
  Loop loop(client);
  for (uint64_t context = 1; context <= 3; ++context) {
    loop.CompleteNow(context);
  }
  const std::vector<Completion> first = Must(loop.queue.Poll(1));
  const std::vector<Completion> rest = Must(loop.queue.Poll(16));
  ASSERT_TRUE(first.size() == 1 && rest.size() == 2);
  EXPECT_EQ(first.front().request_context, 1u);
  EXPECT_EQ(rest.front().request_context, 2u);
  EXPECT_EQ(rest.back().request_context, 3u);
}

TEST_F(LibrnicdCompletions, NotificationIsWaitedForOnce) {
  const Client client = MustConnect();
  Loop loop(client);
  EXPECT_FALSE(Must(loop.queue.WaitForNotification(kAtOnce)));
  ASSERT_TRUE(loop.queue.Arm(CqNotifyType::kAny).ok());
  loop.Complete(1);
  EXPECT_TRUE(Must(loop.queue.WaitForNotification(kTimeout)));
  EXPECT_FALSE(Must(loop.queue.WaitForNotification(kAtOnce)));
}

TEST_F(LibrnicdCompletions, NotificationOfAnotherQueueDoesNotWake) {
  const Client client = MustConnect();
  Loop loop(client);
  Loop other(client);
  Loop third(client);
  for (Loop* const notified : {&other, &third}) {
    ASSERT_TRUE(notified->queue.Arm(CqNotifyType::kAny).ok());
    notified->Complete(1);
  }
  // Events come in order, so that of the other queue is through.
  EXPECT_TRUE(Must(third.queue.WaitForNotification(kTimeout)));
  EXPECT_FALSE(Must(loop.queue.WaitForNotification(kAtOnce)));
  EXPECT_TRUE(Must(other.queue.WaitForNotification(kTimeout)));
}

// Whichever comes first: nothing but the completion can end the wait.
TEST_F(LibrnicdCompletions, PollForWaitsForTheFirstCompletion) {
  constexpr uint64_t kRounds = 64;
  const Client client = MustConnect();
  Loop loop(client);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    auto polled = std::async(std::launch::async, [&] { return loop.queue.PollFor(4, std::chrono::hours(1)); });
    loop.Complete(round);
    const std::vector<Completion> completions = Must(polled.get());
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_EQ(completions.front().request_context, round);
  }
  loop.Complete(kRounds + 1);
  EXPECT_FALSE(Must(loop.queue.WaitForNotification(kAtOnce))) << "the wait has armed the queue";
}

// Where the daemon takes no more waits, the library arms the queue.
TEST_F(LibrnicdCompletions, PollForWaitsAlsoAboveTheLimitOfPendingRequests) {
  auto daemon = DaemonProcess::Start({.flags = {LimitsFlag("session_limits { pending_requests: 1 }")}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  // Only calls wait in the daemon.
  const Client client = Must(Client::Connect({.socket_dir = (*daemon)->socket_dir(), .data_path = DataPath::kCalls}));
  Loop loop(client);
  Loop other(client);
  auto first = std::async(std::launch::async, [&] { return loop.queue.PollFor(4, kTimeout); });
  auto second = std::async(std::launch::async, [&] { return other.queue.PollFor(4, kTimeout); });
  EXPECT_TRUE(Eventually([&] { return UsedBy(client, "pending_requests") == 1; }));
  loop.Complete(1);
  other.Complete(2);
  EXPECT_EQ(Must(first.get()).size(), 1u);
  EXPECT_EQ(Must(second.get()).size(), 1u);
}

TEST_F(LibrnicdCompletions, PollForTakesWhatIsThereWithoutArmingAndEndsInTime) {
  const Client client = MustConnect();
  Loop loop(client);
  Loop other(client);
  loop.CompleteNow(1);
  EXPECT_EQ(Must(loop.queue.PollFor(4, kTimeout)).size(), 1u);
  loop.Complete(2);
  ASSERT_TRUE(other.queue.Arm(CqNotifyType::kAny).ok());
  other.Complete(1);
  EXPECT_TRUE(Must(other.queue.WaitForNotification(kTimeout)));
  EXPECT_FALSE(Must(loop.queue.WaitForNotification(kAtOnce))) << "nobody armed it";
  EXPECT_EQ(Must(loop.queue.PollFor(4, kTimeout)).size(), 1u);
  EXPECT_TRUE(Must(loop.queue.PollFor(4, kAtOnce)).empty());
}

TEST_F(LibrnicdCompletions, ClosedOrMovedFromQueueRefusesEveryCall) {
  const Client client = MustConnect();
  CompletionQueue queue = Must(CompletionQueue::Create(client, 16));
  CompletionQueue taken = std::move(queue);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(UsedBy(client, "completion_queues"), 0u);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  for (CompletionQueue* gone : {&queue, &taken}) {
    EXPECT_EQ(gone->id(), CompletionQueueId{});
    EXPECT_TRUE(FailedWith(gone->Poll(1).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->PollFor(1, kTimeout).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Arm(CqNotifyType::kAny), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->WaitForNotification(kTimeout).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Resize(4), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

}  // namespace
}  // namespace rnicd::test
