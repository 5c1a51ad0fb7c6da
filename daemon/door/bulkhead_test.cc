#include "daemon/door/bulkhead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/manual_clock_fake.h"

namespace rnicd::door {
namespace {

// No job is taken for blocked.
const ManualClock kTimeStands;
const SteadyClock kTimePasses;

// A job that blocks until it is released, at the latest when the test ends.
class Blocker {
 public:
  ~Blocker() { Release(); }
  Bulkhead::Job job() {
    return [began = began_, released = released_.get_future().share()] {
      began->set_value();
      released.wait();
    };
  }
  void WaitUntilBlocked() { began_->get_future().wait(); }
  void Release() {
    if (!std::exchange(is_released_, true)) {
      released_.set_value();
    }
  }

 private:
  const std::shared_ptr<std::promise<void>> began_ = std::make_shared<std::promise<void>>();
  std::promise<void> released_;
  bool is_released_ = false;
};

void RunAndWait(Bulkhead& bulkhead, const std::string& owner) {
  const auto done = std::make_shared<std::promise<void>>();
  bulkhead.Run(owner, [done] { done->set_value(); });
  done->get_future().wait();
}

// Each blocks the jobs of another owner.
void BlockAll(Bulkhead& bulkhead, std::vector<Blocker>& blockers) {
  for (size_t index = 0; index < blockers.size(); ++index) {
    bulkhead.Run("hostile " + std::to_string(index), blockers[index].job());
  }
  for (Blocker& blocker : blockers) {
    blocker.WaitUntilBlocked();
  }
}

TEST(Bulkhead, AnOwnerThatBlocksDelaysNobodyElse) {
  Bulkhead bulkhead(kTimeStands);
  std::vector<Blocker> blockers(8);
  BlockAll(bulkhead, blockers);
  RunAndWait(bulkhead, "innocent");
}

TEST(Bulkhead, JobsOfOneOwnerRunInTheirOrderAndOneAtATime) {
  Bulkhead bulkhead(kTimeStands);
  Blocker blocker;
  bulkhead.Run("owner", blocker.job());
  blocker.WaitUntilBlocked();
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    bulkhead.Run("owner", [&order, name] { order.push_back(name); });
  }
  RunAndWait(bulkhead, "other");
  EXPECT_EQ(order, "") << "the first job is still running";
  blocker.Release();
  RunAndWait(bulkhead, "owner");
  EXPECT_EQ(order, "abc");
}

TEST(Bulkhead, AnOwnerWithTooManyWaitingIsRefusedAloneAndOnlyUntilThen) {
  Bulkhead bulkhead(kTimeStands, {.threads = 4, .waiting_of_owner = 2});
  Blocker blocker;
  bulkhead.Run("owner", blocker.job());
  blocker.WaitUntilBlocked();
  const auto nothing = [] {};
  EXPECT_TRUE(bulkhead.TryRun("owner", nothing));
  EXPECT_TRUE(bulkhead.TryRun("owner", nothing));
  EXPECT_FALSE(bulkhead.TryRun("owner", nothing));
  EXPECT_TRUE(bulkhead.TryRun("other", nothing));
  blocker.Release();
  RunAndWait(bulkhead, "owner");
  EXPECT_TRUE(bulkhead.TryRun("owner", nothing));
}

TEST(Bulkhead, AboveTheLimitOfThreadsOwnersTakeTurns) {
  Bulkhead bulkhead(kTimeStands, {.threads = 1});
  Blocker blocker;
  bulkhead.Run("first", blocker.job());
  blocker.WaitUntilBlocked();
  std::string order;
  bulkhead.Run("second", [&order] { order.push_back('2'); });
  bulkhead.Run("second", [&order] { order.push_back('2'); });
  bulkhead.Run("third", [&order] { order.push_back('3'); });
  blocker.Release();
  RunAndWait(bulkhead, "second");
  EXPECT_EQ(order, "232");
}

TEST(Bulkhead, AllThreadsButOneEndWhenTheyAreNotNeeded) {
  Bulkhead bulkhead(kTimeStands);
  {
    std::vector<Blocker> blockers(8);
    BlockAll(bulkhead, blockers);
    EXPECT_GE(bulkhead.threads(), blockers.size());
  }
  while (bulkhead.threads() > 1) {
    std::this_thread::yield();
  }
  RunAndWait(bulkhead, "owner");
}

// SIGTERM ends a daemon whose clients block it.
TEST(Bulkhead, TheEndDoesNotWaitForABlockedJob) {
  Blocker blocker;
  const auto behind = std::make_shared<std::promise<void>>();
  {
    Bulkhead bulkhead(kTimePasses);
    bulkhead.Run("owner", blocker.job());
    blocker.WaitUntilBlocked();
    bulkhead.Run("owner", [behind] { behind->set_value(); });
  }
  blocker.Release();
  behind->get_future().wait();
}

TEST(BulkheadStart, TheSecondJobRunsAfterTheFirst) {
  Bulkhead bulkhead(kTimeStands);
  const auto ran = std::make_shared<std::promise<std::string>>();
  const auto order = std::make_shared<std::string>();
  EXPECT_EQ(bulkhead.Start(
                "owner", [order] { *order += "blocking "; }, [order, ran] { ran->set_value(*order + "after"); }),
            Bulkhead::Started::kQueued);
  EXPECT_EQ(ran->get_future().get(), "blocking after");
}

TEST(BulkheadStart, IsRefusedWhenTheOwnerHasTooManyThatWait) {
  Bulkhead bulkhead(kTimeStands, {.threads = 8, .waiting_of_owner = 1});
  Blocker blocker;
  bulkhead.Run("owner", blocker.job());
  blocker.WaitUntilBlocked();
  const auto nothing = [] {};
  EXPECT_EQ(bulkhead.Start("owner", nothing, nothing), Bulkhead::Started::kQueued);
  EXPECT_EQ(bulkhead.Start("owner", nothing, nothing), Bulkhead::Started::kRefused);
  EXPECT_EQ(bulkhead.Start("other", nothing, nothing), Bulkhead::Started::kQueued);
}

// It may use what the end destroys next.
TEST(BulkheadStart, TheSecondJobDoesNotRunAfterTheEnd) {
  Blocker blocker;
  const auto ran = std::make_shared<std::atomic<bool>>(false);
  const auto behind = std::make_shared<std::promise<void>>();
  {
    Bulkhead bulkhead(kTimePasses);
    bulkhead.Start("owner", blocker.job(), [ran] { *ran = true; });
    blocker.WaitUntilBlocked();
    bulkhead.Run("owner", [behind] { behind->set_value(); });
  }
  blocker.Release();
  behind->get_future().wait();
  EXPECT_FALSE(*ran);
}

TEST(BulkheadStart, TheEndWaitsForASecondJob) {
  ManualClock clock;
  std::promise<void> runs;
  std::promise<void> ended;
  std::atomic<bool> waits{false};
  {
    Bulkhead bulkhead(clock);
    bulkhead.Start(
        "owner", [] {},
        [&] {
          runs.set_value();
          const std::future<void> end = ended.get_future();
          waits = true;
          // Longer than a blocked job is waited for, whenever the end begins to wait.
          for (int hour = 0; hour < 20 && waits; ++hour) {
            clock.Advance(std::chrono::hours(1));
            waits = end.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout;
          }
        });
    runs.get_future().wait();
  }
  ended.set_value();
  EXPECT_TRUE(waits);
}

TEST(Bulkhead, TheEndWaitsForJobsThatAreNotBlocked) {
  std::atomic<int> ran{0};
  {
    Bulkhead bulkhead(kTimeStands);
    for (int index = 0; index < 100; ++index) {
      bulkhead.Run("owner " + std::to_string(index % 7), [&ran] { ++ran; });
    }
  }
  EXPECT_EQ(ran.load(), 100);
}

}  // namespace
}  // namespace rnicd::door
