#include "provider/engine/engine_threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace rnicd::provider {
namespace {

TEST(EngineThreads, WhoComesWhileThereIsARunnerMakesItRunOnceMore) {
  EngineThreads threads;
  EXPECT_TRUE(threads.BeginRun());
  EXPECT_FALSE(threads.BeginRun());
  EXPECT_FALSE(threads.BeginRun());
  EXPECT_FALSE(threads.EndRun()) << "once more, whoever asked";
  EXPECT_FALSE(threads.idle());
  EXPECT_TRUE(threads.EndRun());
  EXPECT_TRUE(threads.idle());
  EXPECT_TRUE(threads.BeginRun());
}

TEST(EngineThreads, AHolderKeepsItFromBeingIdle) {
  EngineThreads threads;
  threads.Hold();
  threads.Hold();
  threads.Release();
  EXPECT_FALSE(threads.idle());
  threads.Release();
  EXPECT_TRUE(threads.idle());
}

TEST(EngineThreads, ARunnerIsAwaitedUntilItStopsOnce) {
  Mutex mutex;
  EngineThreads threads;
  {
    MutexLock lock(mutex);
    threads.AwaitRunner(mutex);
    threads.BeginRun();
  }
  std::promise<void> waits;
  auto awaited = std::async(std::launch::async, [&] {
    MutexLock lock(mutex);
    waits.set_value();
    threads.AwaitRunner(mutex);
  });
  waits.get_future().wait();
  {
    MutexLock lock(mutex);
    EXPECT_TRUE(threads.EndRun());
    EXPECT_TRUE(threads.BeginRun());
  }
  EXPECT_EQ(awaited.wait_for(std::chrono::minutes(1)), std::future_status::ready) << "the next one is not awaited";
  MutexLock lock(mutex);
  threads.EndRun();
}

}  // namespace
}  // namespace rnicd::provider
