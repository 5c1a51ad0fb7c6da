// Polls that wait for a completion: how each of them ends, in which order, and that none loses a completion.

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "daemon/core/queue/completion_queue.h"
#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kWaitedDepth = 4;
constexpr std::chrono::milliseconds kWait{1000};

// The outcomes of one wait; a wait has at most one.
struct Waiter {
  using Outcomes = std::vector<absl::StatusOr<std::vector<uint64_t>>>;

  // Answer of a client that has given up: false.
  bool takes = true;
  // Shared with the wait, which outlives a test that fails.
  std::shared_ptr<Outcomes> outcomes = std::make_shared<Outcomes>();

  CqWait::Done Done() const {
    return [outcomes = outcomes, takes = takes](const absl::StatusOr<std::vector<Completion>>& results) {
      absl::StatusOr<std::vector<uint64_t>> outcome = std::vector<uint64_t>();
      if (results.ok()) {
        for (const Completion& result : *results) {
          outcome->push_back(result.request_context);
        }
      } else {
        outcome = results.status();
      }
      outcomes->push_back(outcome);
      return takes;
    };
  }
  bool waits() const { return outcomes->empty(); }
  // The status with which it ended; ok unless it has ended, once.
  absl::Status status() const {
    EXPECT_EQ(outcomes->size(), 1u);
    return outcomes->empty() ? absl::OkStatus() : outcomes->front().status();
  }
  // Contexts of the completions it got; fails the test unless it has ended, once.
  std::vector<uint64_t> Got() const {
    EXPECT_EQ(outcomes->size(), 1u);
    EXPECT_TRUE(outcomes->empty() || outcomes->front().ok()) << outcomes->front().status();
    return outcomes->empty() || !outcomes->front().ok() ? std::vector<uint64_t>{99'999} : *outcomes->front();
  }
};

using Contexts = std::vector<uint64_t>;

class CqWaitsTest : public ::testing::Test {
 protected:
  // A poll that must wait; returns its `end`.
  std::function<void()> Wait(Waiter& waiter, uint32_t max = 10) {
    const absl::StatusOr<PolledCq> polled =
        scene_.owner.session->Begin()->queues().Poll(queue(), max, kWait, waiter.Done());
    EXPECT_TRUE(polled.ok()) << polled.status();
    EXPECT_FALSE(polled.ok() && polled->results.has_value());
    return polled.ok() ? polled->end : nullptr;
  }
  absl::StatusOr<PolledCq> Poll(uint32_t max, std::chrono::milliseconds wait) {
    return scene_.owner.session->Begin()->queues().Poll(queue(), max, wait, [](const auto&) {
      ADD_FAILURE() << "the poll has returned its results";
      return true;
    });
  }
  // Completes a receive with this context.
  void Complete(uint64_t context) {
    scene_.owner.MustPost(scene_.pair, {Receive({}, context)});
    scene_.peer.MustPost(scene_.peer_pair, {Send()});
    scene_.peer.Results();
  }
  Contexts Take() {
    Contexts contexts;
    for (const Completion& result : scene_.owner.Results()) {
      contexts.push_back(result.request_context);
    }
    return contexts;
  }
  uint64_t waiting() const { return scene_.world.ledger->used(Resource::kPendingRequests); }
  CompletionQueueId queue() const { return scene_.owner.queue; }
  void After(std::chrono::milliseconds passed) {
    scene_.world.clock.Advance(passed);
    scene_.world.alarms.RunDue();
  }

  Connected scene_;
};

TEST_F(CqWaitsTest, APollOfAQueueWithCompletionsDoesNotWait) {
  Complete(1);
  Complete(2);
  const auto polled = Poll(1, kWait);
  ASSERT_TRUE(polled.ok());
  ASSERT_TRUE(polled->results.has_value());
  EXPECT_EQ(polled->results->size(), 1u);
  EXPECT_EQ(polled->end, nullptr);
  EXPECT_EQ(Take(), Contexts{2});
  EXPECT_EQ(scene_.world.alarms.count(), 0u);
}

TEST_F(CqWaitsTest, APollWithoutATimeOrWithoutAWishReturnsAtOnce) {
  EXPECT_TRUE(Poll(10, std::chrono::milliseconds(0))->results.has_value());
  EXPECT_TRUE(Poll(0, kWait)->results.has_value());
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(CqWaitsTest, ACompletionEndsAWaitWithoutATrace) {
  Waiter waiter;
  Wait(waiter);
  EXPECT_EQ(waiting(), 1u);
  EXPECT_TRUE(waiter.waits());
  Complete(7);
  EXPECT_EQ(waiter.Got(), Contexts{7});
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(scene_.world.alarms.count(), 0u);
  EXPECT_EQ(Take(), Contexts{});
}

TEST_F(CqWaitsTest, TheLongestWaitGetsTheNextCompletion) {
  Waiter first;
  Waiter second;
  Wait(first);
  Wait(second);
  Complete(1);
  EXPECT_TRUE(second.waits());
  Complete(2);
  EXPECT_EQ(first.Got(), Contexts{1});
  EXPECT_EQ(second.Got(), Contexts{2});
}

TEST_F(CqWaitsTest, AWaitEndsWithoutCompletionsWhenItsTimeIsOver) {
  Waiter waiter;
  Wait(waiter);
  After(kWait - std::chrono::milliseconds(1));
  EXPECT_TRUE(waiter.waits());
  After(std::chrono::milliseconds(1));
  EXPECT_EQ(waiter.Got(), Contexts{});
  EXPECT_EQ(waiting(), 0u);
  Complete(3);
  EXPECT_EQ(Take(), Contexts{3}) << "what comes later stays in the queue";
}

TEST_F(CqWaitsTest, AWaitThatIsEndedIsOverAndMayBeEndedAgain) {
  Waiter first;
  Waiter second;
  const auto end = Wait(first);
  Wait(second);
  end();
  end();
  EXPECT_EQ(first.Got(), Contexts{});
  Complete(4);
  EXPECT_EQ(second.Got(), Contexts{4});
}

TEST_F(CqWaitsTest, CompletionsOfAClientThatGaveUpGoToTheNextWait) {
  Waiter gone{.takes = false};
  Waiter second;
  Wait(gone);
  Wait(second);
  Complete(5);
  EXPECT_EQ(gone.Got(), Contexts{5});
  EXPECT_EQ(second.Got(), Contexts{5});
}

TEST_F(CqWaitsTest, CompletionsOfAClientThatGaveUpStayFirstInTheQueue) {
  Waiter gone{.takes = false};
  Wait(gone);
  Complete(5);
  Complete(6);
  EXPECT_EQ(Take(), (Contexts{5, 6}));
}

TEST_F(CqWaitsTest, AnArmedQueueNotifiesThoughAWaitTakesTheCompletion) {
  Waiter waiter;
  Wait(waiter);
  ASSERT_TRUE(scene_.owner.session->Begin()->queues().Arm(queue(), CqNotifyType::kAny).ok());
  Complete(1);
  EXPECT_EQ(waiter.Got(), Contexts{1});
  EXPECT_EQ(scene_.owner.NextEvent<CqNotified>().queue, queue());
  Complete(2);
  EXPECT_TRUE(scene_.owner.HasNoEvent()) << "one arming brings one notification";
}

TEST_F(CqWaitsTest, AQueueArmedAfterAWaitTookTheCompletionWaitsForANewerOne) {
  Waiter waiter;
  Wait(waiter);
  Complete(1);
  ASSERT_TRUE(scene_.owner.session->Begin()->queues().Arm(queue(), CqNotifyType::kAny).ok());
  EXPECT_TRUE(scene_.owner.HasNoEvent());
  Complete(2);
  EXPECT_EQ(scene_.owner.NextEvent<CqNotified>().queue, queue());
}

TEST_F(CqWaitsTest, AnArmingThatSawACompletionTakenIsNotifiedWhenItComesBack) {
  Waiter gone{.takes = false};
  const absl::StatusOr<PolledCq> polled = scene_.owner.session->Begin()->queues().Poll(
      queue(), 10, kWait, [this, done = gone.Done()](const absl::StatusOr<std::vector<Completion>>& results) {
        EXPECT_TRUE(scene_.owner.session->Begin()->queues().Arm(queue(), CqNotifyType::kAny).ok());
        EXPECT_TRUE(scene_.owner.HasNoEvent());
        return done(results);
      });
  ASSERT_TRUE(polled.ok());
  Complete(1);
  EXPECT_EQ(scene_.owner.NextEvent<CqNotified>().queue, queue());
  EXPECT_EQ(Take(), Contexts{1});
}

TEST_F(CqWaitsTest, AWaitEndsWhenItsQueueIsClosed) {
  const CompletionQueueId other = scene_.owner.Queue(kWaitedDepth);
  Waiter waiter;
  ASSERT_TRUE(scene_.owner.session->Begin()->queues().Poll(other, 1, kWait, waiter.Done()).ok());
  ASSERT_TRUE(scene_.owner.CloseQueue(other).ok());
  EXPECT_THAT(waiter.status(), FailsAt(ErrorReason::OBJECT_CLOSING, "cq_id"));
  EXPECT_EQ(waiting(), 0u);
}

// Its queue pair keeps the queue open, and flushes.
TEST_F(CqWaitsTest, AWaitGoesOnWhileTheCloseOfItsQueuePends) {
  Waiter waiter;
  Wait(waiter);
  bool closed = false;
  ASSERT_TRUE(
      scene_.owner.session->Begin()->queues().Close(queue(), {}, [&](const absl::Status&) { closed = true; }).ok());
  EXPECT_TRUE(waiter.waits());
  Complete(1);
  EXPECT_EQ(waiter.Got(), Contexts{1});
  Waiter last;
  Wait(last);
  ASSERT_TRUE(scene_.owner.ClosePair(scene_.pair).ok());
  EXPECT_TRUE(closed);
  EXPECT_THAT(last.status(), FailsWith(ErrorReason::OBJECT_CLOSING));
}

TEST_F(CqWaitsTest, AWaitEndsWhenItsSessionEnds) {
  Waiter waiter;
  Wait(waiter);
  scene_.world.End(scene_.owner.session);
  EXPECT_THAT(waiter.status(), FailsWith(ErrorReason::SESSION_ENDING));
}

TEST_F(CqWaitsTest, AQueueThatHasOverrunIsNotWaitedFor) {
  const CompletionQueueId small = scene_.owner.Queue(1);
  CreateQpArguments arguments = scene_.owner.PairArguments();
  arguments.receive_queue = small;
  const QueuePairId pair = scene_.owner.Pair(arguments);
  scene_.owner.MustPost(pair, {Receive(), Receive()});
  ASSERT_TRUE(scene_.owner.session->Begin()->pairs().Flush(pair).ok());
  Waiter waiter;
  EXPECT_THAT(scene_.owner.session->Begin()->queues().Poll(small, 1, kWait, waiter.Done()).status(),
              FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_TRUE(waiter.waits());
}

TEST_F(CqWaitsTest, AWaitAboveTheLongestIsRefused) {
  EXPECT_THAT(Poll(1, kCqWaitMax + std::chrono::milliseconds(1)).status(),
              FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "wait_ms"));
  Waiter waiter;
  EXPECT_TRUE(scene_.owner.session->Begin()->queues().Poll(queue(), 1, kCqWaitMax, waiter.Done()).ok());
  After(kCqWaitMax);
  EXPECT_EQ(waiter.Got(), Contexts{});
}

TEST(CqWaits, OfASessionAreBoundedByItsPendingRequests) {
  WorldOptions options;
  options.limits.session[Resource::kPendingRequests] = 2;
  World world(options);
  QueueOwner owner(world);
  Waiter waiters[3];
  for (int index = 0; index < 2; ++index) {
    ASSERT_TRUE(owner.session->Begin()->queues().Poll(owner.queue, 1, kWait, waiters[index].Done()).ok());
  }
  EXPECT_THAT(owner.session->Begin()->queues().Poll(owner.queue, 1, kWait, waiters[2].Done()).status(),
              FailsWith(ErrorReason::QUOTA_PENDING_REQUESTS));
  world.clock.Advance(kWait);
  world.alarms.RunDue();
  EXPECT_TRUE(owner.session->Begin()->queues().Poll(owner.queue, 1, kWait, waiters[2].Done()).ok());
  world.End(owner.session);
  EXPECT_EQ(world.Held(), "");
}

// The alarm may ring before the queue has the wait.
TEST(CqWaits, ThatEndBeforeTheyBeginReturnAtOnce) {
  World world;
  QueueOwner owner(world);
  EventQueue events;
  auto adapter = std::make_shared<Adapter>("soft0", *world.provider.OpenAdapter("soft0"), Charge());
  const auto queue = CompletionQueue::Create(adapter, {.depth = kWaitedDepth}, events);
  ASSERT_TRUE(queue.ok());
  const auto wait = std::make_shared<CqWait>();
  wait->max = 1;
  wait->done = [](const auto&) {
    ADD_FAILURE() << "the wait never began";
    return true;
  };
  (*queue)->EndWait(wait);
  const auto taken = (*queue)->TakeOrWait(wait);
  ASSERT_TRUE(taken.ok());
  ASSERT_TRUE(taken->has_value());
  EXPECT_TRUE((*taken)->empty());
  ASSERT_TRUE((*queue)->Close(nullptr).ok());
  EXPECT_THAT((*queue)->TakeOrWait(std::make_shared<CqWait>()).status(), FailsAt(ErrorReason::OBJECT_CLOSING, "cq_id"));
}

// Many threads wait while completions come and waits are ended: each completion is got once, in order for each thread.
TEST_F(CqWaitsTest, ThreadsThatWaitAndGiveUpGetEachCompletionOnce) {
  constexpr uint64_t kCompletions = 300;
  Mutex mutex;
  std::vector<uint64_t> got;
  std::atomic<uint64_t> count = 0;
  const auto keep = [&](const std::vector<Completion>& results) {
    MutexLock lock(mutex);
    for (const Completion& result : results) {
      got.push_back(result.request_context);
    }
    count += results.size();
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t round = 0; count < kCompletions; ++round) {
        const bool gives_up = (round + static_cast<uint64_t>(thread)) % 3 == 0;
        auto answer = std::make_shared<Awaited<int>>();
        const auto polled = scene_.owner.session->Begin()->queues().Poll(
            queue(), 2, kWait, [&, answer, gives_up](const absl::StatusOr<std::vector<Completion>>& results) {
              if (!gives_up && results.ok()) {
                keep(*results);
              }
              answer->Set(1);
              return !gives_up;
            });
        ASSERT_TRUE(polled.ok());
        if (polled->results.has_value()) {
          keep(*polled->results);
        } else {
          std::this_thread::yield();
          polled->end();
          ASSERT_TRUE(answer->Get().has_value());
        }
      }
    });
  }
  for (uint64_t context = 1; context <= kCompletions; ++context) {
    Complete(context);
    // The queue must not overrun.
    while (context - count > 32) {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::sort(got.begin(), got.end());
  Contexts all(kCompletions);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(got, all);
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(scene_.world.alarms.count(), 0u);
}

}  // namespace
}  // namespace rnicd::core
