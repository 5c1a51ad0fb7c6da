#include "client/cpp/objects/mapped_queue.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/rings/system_memory.h"
#include "gtest/gtest.h"
#include "ring/client_pipe.h"

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
                                {.spin_max = std::chrono::microseconds(20),
                                 .daemon_cpu = [] { return 0U; },
                                 .fetch_pipe = [this] { return QueuePipe(pipe_->TakeReadEnd()); }});
  }
  ~MappedQueueTest() override { EXPECT_TRUE(SystemOs().Unmap(mapping_).ok()); }

  void Push(uint64_t context) {
    if (writer_->Push({.request_context = context})) {
      pipe_->Announce();
    }
  }
  bool IsReadable() {
    pollfd wanted{.fd = *queue_->Descriptor(), .events = POLLIN, .revents = 0};
    return poll(&wanted, 1, 0) == 1;
  }
  void ShareCompletions();

  const ring::QueueGeometry geometry_ = ring::MakeQueueGeometry(kDepth);
  const UniqueFd file_{memfd_create("queue", MFD_CLOEXEC)};
  std::span<std::byte> mapping_;
  std::optional<ring::QueueWriter> writer_;
  std::optional<ring::ClientPipe> pipe_ = *ring::ClientPipe::Create();
  std::shared_ptr<MappedQueue> queue_;
  std::array<Completion, 5> polled_;
};

TEST_F(MappedQueueTest, ReturnsTheOldestFirstAndNoMoreThanWanted) {
  for (uint64_t context = 1; context <= 3; ++context) {
    Push(context);
  }
  EXPECT_EQ(*queue_->Poll({}), 0U);
  ASSERT_EQ(*queue_->Poll(std::span(polled_).first(2)), 2U);
  EXPECT_EQ(polled_[0].request_context, 1U);
  EXPECT_EQ(polled_[1].request_context, 2U);
  EXPECT_EQ(*queue_->PollUntil(polled_, In(milliseconds(0))), 1U);
  EXPECT_EQ(*queue_->Poll(polled_), 0U);
}

TEST_F(MappedQueueTest, WaitsForACompletionAndNoLongerThanItMay) {
  EXPECT_EQ(*queue_->PollUntil(polled_, In(milliseconds(20))), 0U);
  auto waiting =
      std::async(std::launch::async, [this] { return queue_->PollUntil(polled_, In(std::chrono::seconds(20))); });
  EXPECT_EQ(waiting.wait_for(milliseconds(20)), std::future_status::timeout);
  Push(7);
  EXPECT_EQ(*waiting.get(), 1U);
  EXPECT_EQ(polled_[0].request_context, 7U);
}

// With threads that sleep on the futex, and on the pipe while an event loop waits too.
void MappedQueueTest::ShareCompletions() {
  constexpr uint32_t kCompletions = 2000;
  std::atomic<uint32_t> taken = 0;
  std::atomic<uint64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (taken < kCompletions) {
        std::array<Completion, 2> polled;
        const size_t count = *queue_->PollUntil(polled, In(milliseconds(20)));
        for (size_t index = 0; index < count; ++index) {
          sum += polled[index].request_context;
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

TEST_F(MappedQueueTest, GivesEachCompletionToOneOfItsThreads) { ShareCompletions(); }

TEST_F(MappedQueueTest, GivesEachCompletionToOneOfItsThreadsBesideAnEventLoop) {
  ASSERT_TRUE(queue_->Descriptor().ok());
  ASSERT_TRUE(*queue_->PrepareToWait());
  ShareCompletions();
  EXPECT_TRUE(IsReadable()) << "whoever took it, the loop was woken";
}

TEST_F(MappedQueueTest, WakesAnEventLoopOnce) {
  EXPECT_FALSE(queue_->PrepareToWait().ok()) << "before Descriptor";
  ASSERT_TRUE(queue_->Descriptor().ok());
  Push(1);
  EXPECT_FALSE(*queue_->PrepareToWait()) << "a completion is there";
  EXPECT_FALSE(IsReadable());
  EXPECT_EQ(*queue_->Poll(polled_), 1U);
  ASSERT_TRUE(*queue_->PrepareToWait());
  EXPECT_FALSE(IsReadable());
  Push(2);
  EXPECT_TRUE(IsReadable());
  queue_->StopWaiting();
  EXPECT_FALSE(IsReadable());
  Push(3);
  EXPECT_FALSE(IsReadable()) << "nobody waits";
  EXPECT_EQ(*queue_->Poll(polled_), 2U);
}

TEST_F(MappedQueueTest, NoWakeUpOfAnEventLoopIsLost) {
  constexpr uint64_t kCompletions = 20'000;
  ASSERT_TRUE(queue_->Descriptor().ok());
  std::thread daemon([&] {
    for (uint64_t context = 0; context < kCompletions; ++context) {
      while (writer_->unread() == writer_->capacity()) {
        std::this_thread::yield();
      }
      Push(context);
    }
  });
  for (uint64_t seen = 0; seen < kCompletions;) {
    if (*queue_->PrepareToWait()) {
      WaitForPipe(*queue_->Descriptor(), std::chrono::seconds(60));
    }
    queue_->StopWaiting();
    seen += *queue_->Poll(polled_);
  }
  daemon.join();
}

TEST_F(MappedQueueTest, AnEventLoopIsWokenByAFailureAndByTheDaemonsEnd) {
  ASSERT_TRUE(queue_->Descriptor().ok());
  ASSERT_TRUE(*queue_->PrepareToWait());
  if (writer_->Fail(static_cast<uint32_t>(NtStatus::kBufferOverflow))) {
    pipe_->Announce();
  }
  EXPECT_TRUE(IsReadable());
  EXPECT_TRUE(FailedWith(queue_->PrepareToWait().status(), ErrorReason::CQ_OVERRUN));
  pipe_.reset();
  EXPECT_TRUE(IsReadable());
}

TEST_F(MappedQueueTest, ReportsAFailureToThoseThatPollAndThoseThatWait) {
  Push(1);
  auto polling =
      std::async(std::launch::async, [this] { return queue_->WaitForNotification(In(std::chrono::seconds(20))); });
  EXPECT_EQ(polling.wait_for(milliseconds(20)), std::future_status::timeout);
  writer_->Fail(static_cast<uint32_t>(NtStatus::kBufferOverflow));
  writer_->Notify();
  EXPECT_TRUE(FailedWith(polling.get().status(), ErrorReason::CQ_OVERRUN));
  EXPECT_TRUE(FailedWith(queue_->Poll(polled_).status(), ErrorReason::CQ_OVERRUN)) << "what it held is lost";
  EXPECT_TRUE(FailedWith(queue_->PollUntil(polled_, In(milliseconds(0))).status(), ErrorReason::CQ_OVERRUN));
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

TEST_F(MappedQueueTest, WaitsEndForCompletionsElsewhere) {
  const auto queue = *MappedQueue::Open(*SharedMapping::Map(file_.get(), geometry_.file_bytes()),
                                        {.spin_max = std::chrono::microseconds(20),
                                         .daemon_cpu = [] { return 0U; },
                                         .fetch_pipe = [this] { return QueuePipe(pipe_->TakeReadEnd()); },
                                         .look_for_end = [] { return true; }});
  EXPECT_EQ(*queue->PollUntil(polled_, In(std::chrono::hours(1))), 0U);
  EXPECT_TRUE(*queue->WaitForNotification(In(std::chrono::hours(1))));
}

TEST_F(MappedQueueTest, KeepsWhatItHasWhenTheSessionEndsAndThenFails) {
  Push(4);
  queue_->End(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  EXPECT_EQ(*queue_->Poll(polled_), 1U);
  EXPECT_EQ(ErrorInfoOf(queue_->Poll(polled_).status()).field, "evicted");
  EXPECT_EQ(ErrorInfoOf(queue_->PollUntil(polled_, In(std::chrono::seconds(20))).status()).field, "evicted");
  EXPECT_EQ(ErrorInfoOf(queue_->WaitForNotification(In(std::chrono::seconds(20))).status()).field, "evicted");
}

TEST_F(MappedQueueTest, IsNotThereInAChild) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(!queue_->Poll(polled_).ok() && !queue_->WaitForNotification(In(milliseconds(0))).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace rnicd::inline client
