#include <sys/resource.h>

#include "daemon/core/request/worker_pool.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

int NicenessIn(WorkerPool& pool) {
  Awaited<int> niceness;
  pool.Post([&] { niceness.Set(getpriority(PRIO_PROCESS, 0)); });
  return niceness.Get().value_or(-100);
}

TEST(WorkerPool, InTheBackgroundItsThreadsGiveWay) {
  WorkerPool background(1, ThreadPriority::kBackground);
  WorkerPool normal(1);
  EXPECT_EQ(NicenessIn(background), 19) << "also where the tests themselves give way";
  EXPECT_EQ(NicenessIn(normal), getpriority(PRIO_PROCESS, 0)) << "other threads are as they were";
}

}  // namespace
}  // namespace rnicd::core
