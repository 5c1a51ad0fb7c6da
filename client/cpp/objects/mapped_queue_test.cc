#include "client/cpp/objects/mapped_queue.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "base/system/os.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kDepth = 8;

Instant In(milliseconds time) { return Instant::clock::now() + time; }

// A mapped queue, with the daemon's end in the hands of the test.
class MappedQueueTest : public testing::Test {
 protected:
  MappedQueueTest() {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(geometry_.file_bytes())), 0);
    mapping_ = *SystemOs().Map(file_.get(), geometry_.file_bytes());
    writer_.emplace(mapping_, geometry_);
    queue_ = *MappedQueue::Open(*SharedMapping::Map(file_.get(), geometry_.file_bytes()),
                                {.spin_max = std::chrono::microseconds(20), .daemon_cpu = [] { return 0U; }});
  }
  ~MappedQueueTest() override { EXPECT_TRUE(SystemOs().Unmap(mapping_).ok()); }

  void Push(uint64_t context) { writer_->Push({.request_context = context}); }

  const ring::QueueGeometry geometry_ = ring::MakeQueueGeometry(kDepth);
  const UniqueFd file_{memfd_create("queue", MFD_CLOEXEC)};
  std::span<std::byte> mapping_;
  std::optional<ring::QueueWriter> writer_;
  std::shared_ptr<MappedQueue> queue_;
};

TEST_F(MappedQueueTest, ReturnsTheOldestFirstAndNoMoreThanWanted) {
  for (uint64_t context = 1; context <= 3; ++context) {
    Push(context);
  }
  EXPECT_TRUE(queue_->Poll(0)->empty());
  const auto two = queue_->Poll(2);
  ASSERT_EQ(two->size(), 2U);
  EXPECT_EQ((*two)[0].request_context, 1U);
  EXPECT_EQ((*two)[1].request_context, 2U);
  EXPECT_EQ(queue_->PollUntil(5, In(milliseconds(0)))->size(), 1U);
  EXPECT_TRUE(queue_->Poll(5)->empty());
}

TEST_F(MappedQueueTest, WaitsForACompletionAndNoLongerThanItMay) {
  EXPECT_TRUE(queue_->PollUntil(1, In(milliseconds(20)))->empty());
  auto waiting = std::async(std::launch::async, [this] { return queue_->PollUntil(4, In(std::chrono::seconds(20))); });
  EXPECT_EQ(waiting.wait_for(milliseconds(20)), std::future_status::timeout);
  Push(7);
  EXPECT_EQ(waiting.get()->front().request_context, 7U);
}

TEST_F(MappedQueueTest, GivesEachCompletionToOneOfItsThreads) {
  constexpr uint32_t kCompletions = 2000;
  std::atomic<uint32_t> taken = 0;
  std::atomic<uint64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (taken < kCompletions) {
        const auto polled = queue_->PollUntil(2, In(milliseconds(20)));
        for (const Completion& completion : *polled) {
          sum += completion.request_context;
          ++taken;
        }
      }
    });
  }
  for (uint64_t context = 1; context <= kCompletions; ++context) {
    while (writer_->unread() == writer_->capacity()) {
      std::this_thread::yield();
    }
    Push(context);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(taken, kCompletions);
  EXPECT_EQ(sum, uint64_t{kCompletions} * (kCompletions + 1) / 2);
}

TEST_F(MappedQueueTest, ReportsAFailureToThoseThatPollAndThoseThatWait) {
  Push(1);
  auto polling =
      std::async(std::launch::async, [this] { return queue_->WaitForNotification(In(std::chrono::seconds(20))); });
  EXPECT_EQ(polling.wait_for(milliseconds(20)), std::future_status::timeout);
  writer_->Fail(static_cast<uint32_t>(NtStatus::kBufferOverflow));
  writer_->Notify();
  EXPECT_TRUE(FailedWith(polling.get().status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue_->Poll(1).status(), ErrorReason::CQ_OVERRUN)) << "what it held is lost";
  EXPECT_TRUE(FailedWith(queue_->PollUntil(1, In(milliseconds(0))).status(), ErrorReason::CQ_OVERRUN));
}

TEST_F(MappedQueueTest, TellsOneThreadOfANotificationAndTheOthersOfTheNext) {
  EXPECT_FALSE(*queue_->WaitForNotification(In(milliseconds(10))));
  writer_->Notify();
  EXPECT_TRUE(*queue_->WaitForNotification(In(milliseconds(0))));
  EXPECT_FALSE(*queue_->WaitForNotification(In(milliseconds(0))));
  std::vector<std::future<absl::StatusOr<bool>>> waiting;
  for (int thread = 0; thread < 2; ++thread) {
    waiting.push_back(
        std::async(std::launch::async, [this] { return queue_->WaitForNotification(In(std::chrono::seconds(20))); }));
  }
  const auto returned_within = [&](milliseconds time) {
    return std::ranges::count_if(waiting,
                                 [time](const auto& each) { return each.wait_for(time) == std::future_status::ready; });
  };
  writer_->Notify();
  while (returned_within(milliseconds(1)) == 0) {
  }
  EXPECT_EQ(returned_within(milliseconds(50)), 1);
  writer_->Notify();
  for (auto& each : waiting) {
    EXPECT_TRUE(*each.get());
  }
}

TEST_F(MappedQueueTest, KeepsWhatItHasWhenTheSessionEndsAndThenFails) {
  Push(4);
  queue_->End(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  EXPECT_EQ(queue_->Poll(1)->size(), 1U);
  EXPECT_EQ(ErrorInfoOf(queue_->Poll(1).status()).field, "evicted");
  EXPECT_EQ(ErrorInfoOf(queue_->PollUntil(1, In(std::chrono::seconds(20))).status()).field, "evicted");
  EXPECT_EQ(ErrorInfoOf(queue_->WaitForNotification(In(std::chrono::seconds(20))).status()).field, "evicted");
}

TEST_F(MappedQueueTest, IsNotThereInAChild) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(!queue_->Poll(1).ok() && !queue_->WaitForNotification(In(milliseconds(0))).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace rnicd::inline client
