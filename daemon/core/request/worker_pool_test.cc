#include "daemon/core/request/worker_pool.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

TEST(WorkerPool, ItsDestructorRunsWhatIsQueued) {
  std::atomic<int> ran{0};
  {
    WorkerPool pool(1);
    BusyWorkers busy(pool, 1);
    for (int index = 0; index < 100; ++index) {
      pool.Post([&ran] { ++ran; });
    }
    busy.Release();
  }
  EXPECT_EQ(ran, 100);
}

TEST(WorkerPool, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    WorkerPool pool(1);
    for (int index = 0; index < 50; ++index) {
      pool.Post([&order, index] { order.push_back(index); });
    }
  }
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(WorkerPool, AJobMayPostAJob) {
  Awaited<int> answer;
  WorkerPool pool(1);
  pool.Post([&] { pool.Post([&] { answer.Set(1); }); });
  EXPECT_EQ(answer.Get(), 1);
}

TEST(WorkerPool, ABusyThreadDoesNotHoldUpAnother) {
  WorkerPool pool(2);
  const BusyWorkers busy(pool, 1);
  Awaited<int> answer;
  pool.Post([&] { answer.Set(1); });
  EXPECT_EQ(answer.Get(), 1);
}

TEST(WorkerPool, OneOwnerNeverHasAllThreads) {
  constexpr int kJobs = 8;
  std::atomic<int> at_once{0};
  Awaited<int> of_another;
  Barrier end;
  WorkerPool pool(3);
  for (int job = 0; job < kJobs; ++job) {
    pool.PostFor(1, [&] {
      ++at_once;
      end.Pass();
    });
  }
  pool.PostFor(2, [&] { of_another.Set(1); });
  EXPECT_EQ(of_another.Get(), 1) << "while the first owner's jobs wait for the barrier";
  EXPECT_LE(at_once, 2);
  end.Open();
}

// In every order of turns, a job that waits behind its owner's running ones is not forgotten.
TEST(WorkerPool, WhatWaitsForItsOwnersRunningJobRunsNext) {
  WorkerPool pool(2);
  Barrier first;
  Awaited<int> second;
  pool.PostFor(1, [&] { first.Pass(); });
  first.AwaitWaiter();
  pool.PostFor(1, [&] { second.Set(1); });
  EXPECT_EQ(second.times(), 0);
  first.Open();
  EXPECT_EQ(second.Get(), 1);
}

// Posts jobs of these owners in this order while the only thread is busy; returns them in the order in which they ran.
std::vector<std::pair<uint64_t, int>> OrderOf(const std::vector<uint64_t>& owners) {
  std::vector<std::pair<uint64_t, int>> order;
  std::map<uint64_t, int> posted;
  Awaited<int> last;
  WorkerPool pool(1);
  BusyWorkers busy(pool, 1);
  for (size_t index = 0; index < owners.size(); ++index) {
    pool.PostFor(owners[index], [&, owner = owners[index], number = posted[owners[index]]++] {
      order.emplace_back(owner, number);
      if (order.size() == owners.size()) {
        last.Set(0);
      }
    });
  }
  busy.Release();
  EXPECT_TRUE(last.Get().has_value());
  return order;
}

using Order = std::vector<std::pair<uint64_t, int>>;

TEST(WorkerPool, OwnersTakeTurns) {
  EXPECT_EQ(OrderOf({1, 1, 1, 1, 2, 2, 3}), (Order{{1, 0}, {2, 0}, {3, 0}, {1, 1}, {2, 1}, {1, 2}, {1, 3}}));
}

TEST(WorkerPool, AnOwnerWithManyJobsDoesNotHoldUpAnothersFirst) {
  std::vector<uint64_t> owners(1000, 7);
  owners.push_back(8);
  EXPECT_EQ(OrderOf(owners)[1], (std::pair<uint64_t, int>{8, 0}));
}

TEST(WorkerPool, AnOwnerWhoseJobsAreDoneWaitsForItsNextTurnLikeANewOne) {
  Order order;
  Awaited<int> last;
  WorkerPool pool(1);
  pool.PostFor(1, [&] {
    order.emplace_back(1, 0);
    pool.PostFor(2, [&] { order.emplace_back(2, 0); });
    pool.PostFor(1, [&] {
      order.emplace_back(1, 1);
      last.Set(0);
    });
  });
  EXPECT_TRUE(last.Get().has_value());
  EXPECT_EQ(order, (Order{{1, 0}, {2, 0}, {1, 1}}));
}

TEST(WorkerPool, ItsDestructorRunsTheJobsOfEveryOwner) {
  std::array<int, 10> ran{};
  {
    WorkerPool pool(1);
    BusyWorkers busy(pool, 1);
    for (uint64_t index = 0; index < 100; ++index) {
      pool.PostFor(index % 10, [&ran, index] { ++ran[index % 10]; });
    }
    busy.Release();
  }
  EXPECT_TRUE(std::all_of(ran.begin(), ran.end(), [](int count) { return count == 10; }));
}

TEST(WorkerPool, AGroupsQueuedJobsAreWithdrawnInOrderAndAllOthersRun) {
  std::vector<std::string> ran;
  std::vector<std::function<void()>> withdrawn;
  Barrier running;
  {
    WorkerPool pool(1);
    const auto queue = [&](const JobOwner& owner, const std::string& name) {
      pool.Enqueue(owner, [&ran, name] { ran.push_back(name); });
    };
    pool.Enqueue({.number = 1, .group = 5}, [&] {
      running.Pass();
      ran.emplace_back("begun");
    });
    running.AwaitWaiter();
    queue({.number = 1, .group = 5}, "first");
    queue({.number = 1, .group = 6}, "another group");
    queue({.number = 1, .group = 5}, "second");
    queue({.number = 2, .group = 5}, "another owner");
    withdrawn = pool.Withdraw({.number = 1, .group = 5});
    EXPECT_TRUE(pool.Withdraw({.number = 1, .group = 5}).empty());
    running.Open();
  }
  EXPECT_EQ(ran, (std::vector<std::string>{"begun", "another owner", "another group"}));
  for (const std::function<void()>& job : withdrawn) {
    job();
  }
  EXPECT_EQ(ran.size(), 5u);
  EXPECT_EQ(ran[3] + " " + ran[4], "first second");
}

TEST(WorkerPool, AnOwnerWithoutJobsAfterAWithdrawalHasNoTurn) {
  WorkerPool pool(1);
  BusyWorkers busy(pool, 1);
  pool.Enqueue({.number = 1, .group = 5}, [] { ADD_FAILURE() << "it was withdrawn"; });
  EXPECT_EQ(pool.Withdraw({.number = 1, .group = 5}).size(), 1u);
  Order order;
  Awaited<int> last;
  pool.PostFor(1, [&] { order.emplace_back(1, 0); });
  pool.PostFor(2, [&] {
    order.emplace_back(2, 0);
    last.Set(0);
  });
  busy.Release();
  EXPECT_TRUE(last.Get().has_value());
  EXPECT_EQ(order, (Order{{1, 0}, {2, 0}}));
}

TEST(WorkerPool, OfManyPostersNoJobIsLostAndEachOwnersStayInOrder) {
  constexpr uint64_t kOwners = 8;
  constexpr int kJobs = 500;
  std::array<std::vector<int>, kOwners> ran;
  {
    WorkerPool pool(1);
    std::vector<std::thread> posters;
    for (uint64_t owner = 0; owner < kOwners; ++owner) {
      posters.emplace_back([&pool, &ran, owner] {
        for (int job = 0; job < kJobs; ++job) {
          pool.PostFor(owner, [&ran, owner, job] { ran[owner].push_back(job); });
        }
      });
    }
    for (std::thread& poster : posters) {
      poster.join();
    }
  }
  std::vector<int> expected(kJobs);
  std::iota(expected.begin(), expected.end(), 0);
  for (const std::vector<int>& of_owner : ran) {
    EXPECT_EQ(of_owner, expected);
  }
}

TEST(WorkerPool, OfManyThreadsEachJobRunsOnce) {
  constexpr uint64_t kJobs = 4000;
  std::vector<std::atomic<int>> ran(kJobs);
  {
    WorkerPool pool(4);
    for (uint64_t job = 0; job < kJobs; ++job) {
      pool.PostFor(job % 7, [&ran, job] { ++ran[job]; });
    }
  }
  EXPECT_TRUE(std::all_of(ran.begin(), ran.end(), [](const std::atomic<int>& count) { return count == 1; }));
}

}  // namespace
}  // namespace rnicd::core
