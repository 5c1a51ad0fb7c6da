#include "client/cpp/completion_queue.h"

#include <thread>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/queue_pair.h"

namespace rnicd::inline client {
namespace {

// Longer than anything here takes, and shorter than a test may.
constexpr std::chrono::seconds kLong{20};

class CompletionQueueTest : public testing::Test {
 protected:
  static v1::CqResultEx ResultOf(uint64_t context) {
    v1::CqResultEx result;
    result.mutable_result()->set_request_context(context);
    return result;
  }

  FakeDaemon daemon_;
  absl::StatusOr<Client> client_ = Client::Connect({.socket_dir = daemon_.socket_dir()});
  absl::StatusOr<CompletionQueue> queue_ = CompletionQueue::Create(*client_, 16);
};

TEST_F(CompletionQueueTest, RefusalsCarryTheirReason) {
  EXPECT_TRUE(FailedWith(CompletionQueue::Create(*client_, 0).status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_TRUE(FailedWith(queue_->Resize(1), ErrorReason::CQ_BACKLOG));
  EXPECT_TRUE(queue_->Resize(2).ok());
  const Client taken = *std::move(client_);
  EXPECT_TRUE(FailedWith(CompletionQueue::Create(*client_, 16).status(), ErrorReason::SESSION_REQUIRED));
}

TEST_F(CompletionQueueTest, NotificationIsWaitedForOnce) {
  EXPECT_FALSE(*queue_->WaitForNotification(std::chrono::milliseconds(1)));
  ASSERT_TRUE(queue_->Arm(CqNotifyType::kSolicited).ok());
  EXPECT_EQ(daemon_.queues().Arms(), std::vector{v1::CQ_NOTIFY_TYPE_SOLICITED});
  daemon_.Notify(queue_->id().value);
  const auto notified = queue_->WaitForNotification(kLong);
  ASSERT_TRUE(notified.ok()) << notified.status();
  EXPECT_TRUE(*notified);
  EXPECT_FALSE(*queue_->WaitForNotification(std::chrono::milliseconds(1)));
}

TEST_F(CompletionQueueTest, NotificationOfAnotherQueueDoesNotWake) {
  const auto other = CompletionQueue::Create(*client_, 16);
  auto third = CompletionQueue::Create(*client_, 16);
  daemon_.Notify(other->id().value);
  daemon_.Notify(third->id().value);
  // Events come in order, so that of the other queue is through.
  EXPECT_TRUE(*third->WaitForNotification(kLong));
  EXPECT_FALSE(*queue_->WaitForNotification(std::chrono::milliseconds(1)));
}

TEST_F(CompletionQueueTest, PollForArmsAndWaitsForTheFirstCompletion) {
  std::thread completer([this] {
    while (daemon_.queues().Arms().empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    daemon_.queues().Complete(queue_->id().value, ResultOf(8));
    daemon_.Notify(queue_->id().value);
  });
  const auto completions = queue_->PollFor(4, kLong);
  completer.join();
  ASSERT_TRUE(completions.ok()) << completions.status();
  ASSERT_EQ(completions->size(), 1u);
  EXPECT_EQ(completions->front().request_context, 8u);
  EXPECT_EQ(daemon_.queues().Arms(), std::vector{v1::CQ_NOTIFY_TYPE_ANY});
}

TEST_F(CompletionQueueTest, PollForTakesWhatIsThereWithoutArmingAndEndsInTime) {
  daemon_.queues().Complete(queue_->id().value, ResultOf(1));
  EXPECT_EQ(queue_->PollFor(4, kLong)->size(), 1u);
  EXPECT_TRUE(daemon_.queues().Arms().empty());
  EXPECT_TRUE(queue_->PollFor(4, std::chrono::milliseconds(1))->empty());
}

TEST_F(CompletionQueueTest, OverrunIsReportedToWaitersAndPolls) {
  daemon_.queues().Overrun();
  daemon_.Notify(queue_->id().value, NtStatus::kBufferOverflow);
  EXPECT_TRUE(FailedWith(queue_->WaitForNotification(kLong).status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue_->WaitForNotification(kLong).status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue_->PollFor(1, kLong).status(), ErrorReason::CQ_OVERRUN));
}

TEST_F(CompletionQueueTest, EndOfTheSessionWakesWaiters) {
  daemon_.EndSession("evicted");
  const absl::Status why = queue_->WaitForNotification(kLong).status();
  EXPECT_TRUE(FailedWith(why, ErrorReason::SESSION_ENDING));
  EXPECT_EQ(ErrorInfoOf(why).field, "evicted");
}

TEST_F(CompletionQueueTest, QueueMayGoBeforeItsQueuePairs) {
  auto pair = QueuePair::Create(*queue_, *queue_, {});
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_TRUE(queue_->Close().ok());
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
  EXPECT_TRUE(pair->State().ok());
}

TEST_F(CompletionQueueTest, ClosedOrMovedFromQueueRefusesEveryCall) {
  CompletionQueue taken = *std::move(queue_);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(daemon_.state().LiveOthers(), 0u);
  for (CompletionQueue* gone : {&*queue_, &taken}) {
    EXPECT_EQ(gone->id(), CompletionQueueId{});
    EXPECT_TRUE(FailedWith(gone->Poll(1).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->PollFor(1, kLong).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Arm(CqNotifyType::kAny), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->WaitForNotification(kLong).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Resize(4), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

}  // namespace
}  // namespace rnicd::inline client
