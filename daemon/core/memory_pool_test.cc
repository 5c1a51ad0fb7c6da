#include "daemon/core/memory_pool.h"

#include <algorithm>
#include <vector>

#include "base/os_fake.h"
#include "base/units.h"
#include "daemon/core/core_fixture_test.h"
#include "daemon/core/pool_refiller.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

PoolClass Files(uint64_t bytes, uint32_t files) { return {.pages = {}, .file_bytes = bytes, .files = files}; }

class MemoryPoolTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Ledger> LedgerUpTo(uint64_t bytes) {
    Limits limits;
    limits[Resource::kMemoryBytes] = bytes;
    return std::make_shared<Ledger>(limits, nullptr);
  }
  // Refills until there is nothing to do, or no way.
  static void Refill(MemoryPool& pool) {
    while (pool.RefillPiece().bytes != 0) {
    }
  }
  static std::vector<uint32_t> Ready(const MemoryPool& pool) {
    std::vector<uint32_t> ready;
    for (const MemoryPool::ClassState& each : pool.state().classes) {
      ready.push_back(each.ready);
    }
    return ready;
  }
  static MemoryPool::Service ServiceOf(const MemoryPool& pool, uint64_t page_bytes) {
    const auto served = pool.state().served;
    return *std::ranges::find(served, page_bytes, &MemoryPool::Service::page_bytes);
  }

  FaultyOs os_{LinuxOs()};
  std::shared_ptr<Ledger> node_ = LedgerUpTo(16 * kMiB);
};

TEST_F(MemoryPoolTest, AFileThatIsReadyIsPopulatedAndCharged) {
  MemoryPool pool(os_, node_, {Files(2 * kMiB, 2)});
  EXPECT_FALSE(pool.Take(2 * kMiB, kNdkPageBytes, std::nullopt).has_value());
  Refill(pool);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), 4 * kMiB);
  const auto file = pool.Take(2 * kMiB, kNdkPageBytes, std::nullopt);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->memory.populated(), 2 * kMiB);
  EXPECT_EQ(os_.Inspect(file->memory.file())->populated_bytes, 2 * kMiB);
  EXPECT_TRUE(std::ranges::all_of(file->memory.mapping(), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).hits, 1u);
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).misses, 1u);
}

TEST_F(MemoryPoolTest, WhatIsTakenIsMadeAnewAndNeverGivenTwice) {
  MemoryPool pool(os_, node_, {Files(kMiB, 1)});
  Refill(pool);
  const auto first = pool.Take(kMiB, kNdkPageBytes, std::nullopt);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(pool.Take(kMiB, kNdkPageBytes, std::nullopt).has_value());
  first->memory.mapping()[0] = std::byte{77};
  Refill(pool);
  const auto second = pool.Take(kMiB, kNdkPageBytes, std::nullopt);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(os_.Inspect(first->memory.file())->inode, os_.Inspect(second->memory.file())->inode);
  EXPECT_EQ(second->memory.mapping()[0], std::byte{0});
}

TEST_F(MemoryPoolTest, TheNearestFileWithinAFactorOfTwoServes) {
  MemoryPool pool(os_, node_, {Files(kMiB, 1), Files(2 * kMiB, 1), Files(4 * kMiB, 1)});
  Refill(pool);
  EXPECT_FALSE(pool.Take(kMiB / 2 - kNdkPageBytes, kNdkPageBytes, std::nullopt).has_value());
  EXPECT_FALSE(pool.Take(8 * kMiB + kNdkPageBytes, kNdkPageBytes, std::nullopt).has_value());
  EXPECT_EQ(pool.Take(3 * kMiB - kNdkPageBytes, kNdkPageBytes, std::nullopt)->memory.size(), 2 * kMiB);
  EXPECT_EQ(pool.Take(8 * kMiB, kNdkPageBytes, std::nullopt)->memory.size(), 4 * kMiB);
  EXPECT_EQ(pool.Take(kMiB / 2, kNdkPageBytes, std::nullopt)->memory.size(), kMiB);
}

TEST_F(MemoryPoolTest, AFileOfTheChosenNodeServesThoseWhoWantNoneOrThatOne) {
  PoolClass wanted = Files(kMiB, 1);
  wanted.pages.numa_node = 0;
  MemoryPool pool(os_, node_, {wanted});
  Refill(pool);
  EXPECT_FALSE(pool.Take(kMiB, kNdkPageBytes, 1).has_value());
  auto file = pool.Take(kMiB, kNdkPageBytes, 0);
  ASSERT_TRUE(file.has_value());
  pool.Return(*std::move(file));
  EXPECT_TRUE(pool.Take(kMiB, kNdkPageBytes, std::nullopt).has_value());
}

TEST_F(MemoryPoolTest, WithoutAChoiceOfPagesAMissCountsOnce) {
  PoolClass large = Files(2 * kMiB, 1);
  large.pages.page_bytes = 2 * kMiB;
  MemoryPool pool(os_, node_, {large});
  EXPECT_FALSE(pool.Take(4 * kMiB, std::nullopt, std::nullopt).has_value());
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).misses, 1u);
  EXPECT_EQ(ServiceOf(pool, 2 * kMiB).misses, 0u);
  EXPECT_FALSE(pool.Take(4 * kMiB, 2 * kMiB, std::nullopt).has_value());
  EXPECT_EQ(ServiceOf(pool, 2 * kMiB).misses, 1u);
}

TEST_F(MemoryPoolTest, TheNodesLimitBoundsIt) {
  node_ = LedgerUpTo(3 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 5)});
  Refill(pool);
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{3});
  EXPECT_THAT(pool.state().blocked, FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
}

TEST_F(MemoryPoolTest, AClassThatCannotBeFilledDoesNotKeepTheOthersEmpty) {
  node_ = LedgerUpTo(3 * kMiB);
  MemoryPool pool(os_, node_, {Files(8 * kMiB, 1), Files(kMiB, 2)});
  for (int retry = 0; retry < 3; ++retry) {
    Refill(pool);
  }
  EXPECT_EQ(Ready(pool), (std::vector<uint32_t>{0, 2}));
  EXPECT_THAT(pool.state().blocked, FailsWith(ErrorReason::QUOTA_MEMORY_BYTES));
}

TEST_F(MemoryPoolTest, WhatIsReadyOrBeingMadeGivesWayToASession) {
  node_ = LedgerUpTo(4 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 2), Files(2 * kMiB, 1)});
  while (Ready(pool) != std::vector<uint32_t>{2, 0}) {
    ASSERT_NE(pool.RefillPiece().bytes, 0u);
  }
  ASSERT_NE(pool.RefillPiece().bytes, 0u);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), 4 * kMiB);
  EXPECT_TRUE(pool.MakeRoom(5 * kMiB).empty()) << "more than the limit";
  EXPECT_EQ(pool.MakeRoom(3 * kMiB).size(), 1u);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), kMiB);
  EXPECT_TRUE(pool.MakeRoom(3 * kMiB).empty()) << "there is room";
  const auto charge = Charge::Take(node_, Resource::kMemoryBytes, 3 * kMiB);
  Refill(pool);
  EXPECT_EQ(Ready(pool), (std::vector<uint32_t>{1, 0}));
}

TEST_F(MemoryPoolTest, AFileThatComesBackIsReadyAgainIfTheLimitAllowsIt) {
  MemoryPool pool(os_, node_, {Files(kMiB, 1)});
  Refill(pool);
  auto file = pool.Take(kMiB, kNdkPageBytes, std::nullopt);
  file->charge.Refund();
  pool.Return(*std::move(file));
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{1});
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), kMiB);
  file = pool.Take(kMiB, kNdkPageBytes, std::nullopt);
  file->charge.Refund();
  const auto all = Charge::Take(node_, Resource::kMemoryBytes, 16 * kMiB);
  pool.Return(*std::move(file));
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{0});
}

TEST_F(MemoryPoolTest, WhicheverCallFailsNothingIsLeftAndTheNextTrySucceeds) {
  for (const char* const method : {"CreateMemoryFile", "Map", "BindToNumaNode", "MakePages", "MapPages"}) {
    PoolClass wanted = Files(kMiB, 1);
    wanted.pages.numa_node = 0;
    {
      MemoryPool pool(os_, node_, {wanted});
      os_.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
      Refill(pool);
      EXPECT_EQ(Ready(pool), std::vector<uint32_t>{0}) << method;
      EXPECT_THAT(pool.state().blocked, FailsWith(ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << method;
      EXPECT_EQ(os_.live_mappings(), 0u) << method;
      EXPECT_EQ(node_->used(Resource::kMemoryBytes), 0u) << method;
      Refill(pool);
      EXPECT_EQ(Ready(pool), std::vector<uint32_t>{1}) << method;
      EXPECT_TRUE(pool.state().blocked.ok()) << method;
    }
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
    EXPECT_TRUE(node_->empty()) << method;
  }
}

TEST_F(MemoryPoolTest, TheThreadRefillsWhatIsTakenAndThenSleeps) {
  MemoryPool pool(os_, node_, {Files(kMiB, 2)});
  const PoolRefiller refiller(pool, RefillBounds{});
  for (uint64_t taken = 0; taken < 5;) {
    if (pool.Take(kMiB, kNdkPageBytes, std::nullopt).has_value()) {
      ++taken;
    } else {
      std::this_thread::yield();
    }
  }
  while (pool.state().refilled_files < 7) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{2});
}

TEST_F(MemoryPoolTest, TheThreadRefillsWhatGaveWay) {
  MemoryPool pool(os_, LedgerUpTo(2 * kMiB), {Files(kMiB, 2)});
  const PoolRefiller refiller(pool, RefillBounds{});
  while (pool.state().refilled_files < 2) {
    std::this_thread::yield();
  }
  EXPECT_EQ(pool.MakeRoom(kMiB).size(), 1u);
  while (pool.state().refilled_files < 3) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{2});
}

TEST(PoolRefiller, RestsForItsShareOfACoreAndItsRate) {
  using std::chrono::microseconds;
  const RefillBounds bounds = {.cpu_percent = 25, .bytes_per_second = 100 * kMiB};
  EXPECT_EQ(RestAfter(bounds, 0, microseconds(100)), microseconds(300));
  EXPECT_EQ(RestAfter(bounds, kMiB, microseconds(400)), microseconds(9600));
  EXPECT_EQ(RestAfter(bounds, kMiB, microseconds(4000)), microseconds(12000));
}

}  // namespace
}  // namespace rnicd::core
