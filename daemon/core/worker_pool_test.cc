#include "daemon/core/worker_pool.h"

#include "daemon/core/core_fixture_test.h"

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
  pool.Post([&] { pool.Post([&] { answer.Bring(1); }); });
  EXPECT_EQ(answer.Get(), 1);
}

TEST(WorkerPool, ABusyThreadDoesNotHoldUpAnother) {
  WorkerPool pool(2);
  const BusyWorkers busy(pool, 1);
  Awaited<int> answer;
  pool.Post([&] { answer.Bring(1); });
  EXPECT_EQ(answer.Get(), 1);
}

}  // namespace
}  // namespace rnicd::core
