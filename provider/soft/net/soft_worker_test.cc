#include "provider/soft/net/soft_worker.h"

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

TEST(ThreadWorker, RunsJobsInTheOrderTheyCame) {
  ThreadWorker worker;
  std::vector<int> order;
  Latch done(100);
  for (int job = 0; job < 100; ++job) {
    worker.Post([&, job] {
      order.push_back(job);
      done.CountDown();
    });
  }
  ASSERT_TRUE(done.Wait());
  worker.Stop();
  for (int job = 0; job < 100; ++job) {
    EXPECT_EQ(order[job], job);
  }
}

TEST(ThreadWorker, RunsJobsBesideTheCaller) {
  ThreadWorker worker;
  Latch done(1);
  std::atomic<bool> here{false};
  worker.Post([&, caller = std::this_thread::get_id()] {
    here = std::this_thread::get_id() == caller;
    done.CountDown();
  });
  ASSERT_TRUE(done.Wait());
  EXPECT_FALSE(here);
}

TEST(ThreadWorker, ADelayedJobRunsNotBeforeItsTimeAndLetsOthersPass) {
  ThreadWorker worker;
  constexpr milliseconds kDelay{20};
  std::vector<char> order;
  Latch done(3);
  const auto start = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration waited{};
  worker.PostAfter(2 * kDelay, [&] {
    order.push_back('c');
    done.CountDown();
  });
  worker.PostAfter(kDelay, [&] {
    waited = std::chrono::steady_clock::now() - start;
    order.push_back('b');
    done.CountDown();
  });
  worker.Post([&] {
    order.push_back('a');
    done.CountDown();
  });
  ASSERT_TRUE(done.Wait());
  worker.Stop();
  EXPECT_EQ(order, (std::vector<char>{'a', 'b', 'c'}));
  EXPECT_GE(waited, kDelay);
}

TEST(ThreadWorker, AJobMayPostAnother) {
  ThreadWorker worker;
  Latch done(1);
  worker.Post([&] { worker.Post([&] { done.CountDown(); }); });
  EXPECT_TRUE(done.Wait());
}

TEST(ThreadWorker, StopDropsWhatWaitsAndLetsGoOfWhatItHolds) {
  ThreadWorker worker;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> weak = held;
  std::atomic<bool> ran{false};
  worker.PostAfter(hours(1), [&ran, held = std::move(held)] { ran = true; });
  EXPECT_FALSE(weak.expired());
  worker.Stop();
  EXPECT_FALSE(ran);
  EXPECT_TRUE(weak.expired());
}

TEST(ThreadWorker, StopWaitsForTheJobThatRuns) {
  ThreadWorker worker;
  Latch started(1);
  Latch go(1);
  std::atomic<bool> finished{false};
  worker.Post([&] {
    started.CountDown();
    EXPECT_TRUE(go.Wait());
    finished = true;
  });
  ASSERT_TRUE(started.Wait());
  std::thread stopper([&] {
    worker.Stop();
    EXPECT_TRUE(finished);
  });
  go.CountDown();
  stopper.join();
}

TEST(ThreadWorker, AfterStopJobsAreDropped) {
  ThreadWorker worker;
  std::atomic<bool> ran{false};
  Latch done(1);
  worker.Post([&] { done.CountDown(); });
  ASSERT_TRUE(done.Wait());
  worker.Stop();
  worker.Post([&] { ran = true; });
  worker.Stop();
  EXPECT_FALSE(ran);
}

TEST(ThreadWorker, AnEngineThatWasNeverUsedStops) {
  ThreadWorker worker;
  worker.Stop();
}

TEST(ThreadWorker, TheDestructorStops) {
  std::atomic<bool> ran{false};
  {
    ThreadWorker worker;
    worker.PostAfter(hours(1), [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(ThreadWorker, ManyThreadsMayPost) {
  ThreadWorker worker;
  constexpr int kThreads = 4;
  constexpr int kJobs = 500;
  Latch done(kThreads * kJobs);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int job = 0; job < kJobs; ++job) {
        worker.PostAfter(std::chrono::microseconds(job % 3), [&] { done.CountDown(); });
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
