#include "provider/soft/soft_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

namespace rnicd::provider {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Counts down to a moment that the test waits for.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}

  void CountDown() {
    MutexLock lock(mutex_);
    --count_;
    changed_.NotifyAll();
  }
  bool Wait() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    MutexLock lock(mutex_);
    while (count_ > 0) {
      if (!changed_.WaitUntil(mutex_, deadline)) {
        return false;
      }
    }
    return true;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int count_ RNICD_GUARDED_BY(mutex_);
};

TEST(ThreadEngine, RunsJobsInTheOrderTheyCame) {
  ThreadEngine engine;
  std::vector<int> order;
  Latch done(100);
  for (int job = 0; job < 100; ++job) {
    engine.Post([&, job] {
      order.push_back(job);
      done.CountDown();
    });
  }
  ASSERT_TRUE(done.Wait());
  engine.Stop();
  for (int job = 0; job < 100; ++job) {
    EXPECT_EQ(order[job], job);
  }
}

TEST(ThreadEngine, RunsJobsBesideTheCaller) {
  ThreadEngine engine;
  Latch done(1);
  std::atomic<bool> here{false};
  engine.Post([&, caller = std::this_thread::get_id()] {
    here = std::this_thread::get_id() == caller;
    done.CountDown();
  });
  ASSERT_TRUE(done.Wait());
  EXPECT_FALSE(here);
}

TEST(ThreadEngine, ADelayedJobRunsNotBeforeItsTimeAndLetsOthersPass) {
  ThreadEngine engine;
  constexpr milliseconds kDelay{20};
  std::vector<char> order;
  Latch done(3);
  const auto start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration waited{};
  engine.PostAfter(2 * kDelay, [&] {
    order.push_back('c');
    done.CountDown();
  });
  engine.PostAfter(kDelay, [&] {
    waited = std::chrono::steady_clock::now() - start;
    order.push_back('b');
    done.CountDown();
  });
  engine.Post([&] {
    order.push_back('a');
    done.CountDown();
  });
  ASSERT_TRUE(done.Wait());
  engine.Stop();
  EXPECT_EQ(order, (std::vector<char>{'a', 'b', 'c'}));
  EXPECT_GE(waited, kDelay);
}

TEST(ThreadEngine, AJobMayPostAnother) {
  ThreadEngine engine;
  Latch done(1);
  engine.Post([&] { engine.Post([&] { done.CountDown(); }); });
  EXPECT_TRUE(done.Wait());
}

TEST(ThreadEngine, StopDropsWhatWaitsAndLetsGoOfWhatItHolds) {
  ThreadEngine engine;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> weak = held;
  std::atomic<bool> ran{false};
  engine.PostAfter(hours(1), [&ran, held = std::move(held)] { ran = true; });
  EXPECT_FALSE(weak.expired());
  engine.Stop();
  EXPECT_FALSE(ran);
  EXPECT_TRUE(weak.expired());
}

TEST(ThreadEngine, StopWaitsForTheJobThatRuns) {
  ThreadEngine engine;
  Latch started(1);
  Latch go(1);
  std::atomic<bool> finished{false};
  engine.Post([&] {
    started.CountDown();
    EXPECT_TRUE(go.Wait());
    finished = true;
  });
  ASSERT_TRUE(started.Wait());
  std::thread stopper([&] {
    engine.Stop();
    EXPECT_TRUE(finished);
  });
  go.CountDown();
  stopper.join();
}

TEST(ThreadEngine, AfterStopJobsAreDropped) {
  ThreadEngine engine;
  std::atomic<bool> ran{false};
  Latch done(1);
  engine.Post([&] { done.CountDown(); });
  ASSERT_TRUE(done.Wait());
  engine.Stop();
  engine.Post([&] { ran = true; });
  engine.Stop();
  EXPECT_FALSE(ran);
}

TEST(ThreadEngine, AnEngineThatWasNeverUsedStops) {
  ThreadEngine engine;
  engine.Stop();
}

TEST(ThreadEngine, TheDestructorStops) {
  std::atomic<bool> ran{false};
  {
    ThreadEngine engine;
    engine.PostAfter(hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(ThreadEngine, ManyThreadsMayPost) {
  ThreadEngine engine;
  constexpr int kThreads = 4;
  constexpr int kJobs = 500;
  Latch done(kThreads * kJobs);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int job = 0; job < kJobs; ++job) {
        engine.PostAfter(std::chrono::microseconds(job % 3), [&] { done.CountDown(); });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(done.Wait());
}

}  // namespace
}  // namespace rnicd::provider
