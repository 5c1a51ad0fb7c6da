#include "client/cpp/session/queue_events.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "base/ntstatus.h"
#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

constexpr CompletionQueueId kQueue{5};
constexpr QueuePairId kPair{9};

v1::CqNotification NotificationOf(CompletionQueueId id, NtStatus status = NtStatus::kSuccess) {
  v1::CqNotification event;
  event.set_cq_id(id.value);
  event.set_ntstatus(static_cast<uint32_t>(status));
  return event;
}

v1::QpDisconnected DisconnectionOf(QueuePairId id) {
  v1::QpDisconnected event;
  event.set_qp_id(id.value);
  return event;
}

TEST(QueueEvents, NotificationsReachTheirQueueUntilItIsForgotten) {
  QueueEvents events;
  std::vector<absl::Status> seen;
  events.Watch(kQueue, [&seen](const absl::Status& outcome) { seen.push_back(outcome); });
  events.Deliver(NotificationOf(kQueue));
  events.Deliver(NotificationOf(CompletionQueueId{6}));
  events.Deliver(NotificationOf(kQueue, NtStatus::kBufferOverflow));
  events.Deliver(NotificationOf(kQueue, NtStatus::kInternalError));
  events.Remove(kQueue);
  events.Deliver(NotificationOf(kQueue));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen[0].ok());
  EXPECT_TRUE(FailedWith(seen[1], ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(seen[2], ErrorReason::DEVICE_FAILED));
}

TEST(QueueEvents, EndOfStreamReachesQueuesThatWatchAndThoseThatComeLater) {
  QueueEvents events;
  std::vector<absl::Status> seen;
  const auto handler = [&seen](const absl::Status& outcome) { seen.push_back(outcome); };
  events.Watch(kQueue, handler);
  events.Close(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  events.Close(MakeError(ErrorReason::INTERNAL_FAULT));
  events.Watch(CompletionQueueId{6}, handler);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(ErrorInfoOf(seen[0]).field, "evicted");
  EXPECT_EQ(seen[1], seen[0]);
}

TEST(QueueEvents, DisconnectionIsToldOnce) {
  QueueEvents events;
  int told = 0;
  events.Watch(kPair, [&told] { ++told; });
  events.Deliver(DisconnectionOf(QueuePairId{10}));
  EXPECT_EQ(told, 0);
  events.Deliver(DisconnectionOf(kPair));
  events.Deliver(DisconnectionOf(kPair));
  EXPECT_EQ(told, 1);
}

TEST(QueueEvents, ForgottenQueuePairIsNotTold) {
  QueueEvents events;
  int told = 0;
  events.Watch(kPair, [&told] { ++told; });
  events.Remove(kPair);
  events.Deliver(DisconnectionOf(kPair));
  EXPECT_EQ(told, 0);
}

TEST(QueueEvents, HandlerMayForgetItsOwnQueuePair) {
  QueueEvents events;
  bool told = false;
  events.Watch(kPair, [&] {
    events.Remove(kPair);
    told = true;
  });
  events.Deliver(DisconnectionOf(kPair));
  EXPECT_TRUE(told);
}

// Many rounds: a Remove that does not wait would fail at least one of them.
TEST(QueueEvents, ForgettingWaitsForAHandlerThatRuns) {
  for (int round = 0; round < 200; ++round) {
    QueueEvents events;
    std::promise<void> running;
    std::atomic<bool> forgetting = false;
    std::atomic<bool> returned = false;
    events.Watch(kPair, [&] {
      running.set_value();
      while (!forgetting) {
        std::this_thread::yield();
      }
      std::this_thread::yield();
      returned = true;
    });
    std::thread stream([&] { events.Deliver(DisconnectionOf(kPair)); });
    EXPECT_EQ(running.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    forgetting = true;
    events.Remove(kPair);
    EXPECT_TRUE(returned);
    stream.join();
  }
}

}  // namespace
}  // namespace rnicd::inline client
