#include "daemon/core/memory/memory_pool.h"

#include <algorithm>
#include <vector>

#include "base/system/faulty_os.h"
#include "base/units.h"
#include "daemon/core/memory/pool_refiller.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

class MemoryPoolTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Ledger> LedgerUpTo(uint64_t bytes) {
    Limits limits;
    limits[Resource::kMemoryBytes] = bytes;
    return std::make_shared<Ledger>(limits, nullptr);
  }
  // Refills until no file is missing, or none can be made.
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

  // The result for a session that is charged elsewhere.
  static std::optional<FreshMemory> Take(MemoryPool& pool, uint64_t size,
                                         std::optional<uint64_t> page_bytes = kNdkPageBytes,
                                         std::optional<uint32_t> numa_node = std::nullopt) {
    const PageWish wish = {.page_bytes = page_bytes, .numa_node = numa_node};
    absl::StatusOr<MemoryPool::Given> given = pool.Give(size, wish, [] { return absl::OkStatus(); });
    return std::move(given->ready);
  }
  // Charges node_ for a session that brings its memory.
  absl::StatusOr<MemoryPool::Given> GiveRoom(MemoryPool& pool, uint64_t size) {
    return pool.Give(size, std::nullopt, [&]() -> absl::Status {
      RNICD_ASSIGN_OR_RETURN(charges_.emplace_back(), Charge::Take(node_, Resource::kMemoryBytes, size));
      return absl::OkStatus();
    });
  }

  FaultyOs os_{SystemOs()};
  std::shared_ptr<Ledger> node_ = LedgerUpTo(16 * kMiB);
  std::vector<Charge> charges_;
};

TEST_F(MemoryPoolTest, AFileThatIsReadyIsPopulatedAndCharged) {
  MemoryPool pool(os_, node_, {Files(2 * kMiB, 2)});
  EXPECT_FALSE(Take(pool, 2 * kMiB).has_value());
  Refill(pool);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), 4 * kMiB);
  const auto file = Take(pool, 2 * kMiB);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->populated(), 2 * kMiB);
  EXPECT_EQ(os_.Inspect(file->file())->populated_bytes, 2 * kMiB);
  EXPECT_TRUE(std::ranges::all_of(file->mapping(), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).hits, 1u);
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).misses, 1u);
}

TEST_F(MemoryPoolTest, WhatIsTakenIsMadeAnewAndNeverGivenTwice) {
  MemoryPool pool(os_, node_, {Files(kMiB, 1)});
  Refill(pool);
  const auto first = Take(pool, kMiB);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(Take(pool, kMiB).has_value());
  first->mapping()[0] = std::byte{77};
  Refill(pool);
  const auto second = Take(pool, kMiB);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(os_.Inspect(first->file())->inode, os_.Inspect(second->file())->inode);
  EXPECT_EQ(second->mapping()[0], std::byte{0});
}

TEST_F(MemoryPoolTest, TheNearestFileWithinAFactorOfTwoServes) {
  MemoryPool pool(os_, node_, {Files(kMiB, 1), Files(2 * kMiB, 1), Files(4 * kMiB, 1)});
  Refill(pool);
  EXPECT_FALSE(Take(pool, kMiB / 2 - kNdkPageBytes).has_value());
  EXPECT_FALSE(Take(pool, 8 * kMiB + kNdkPageBytes).has_value());
  EXPECT_EQ(Take(pool, 3 * kMiB - kNdkPageBytes)->size(), 2 * kMiB);
  EXPECT_EQ(Take(pool, 8 * kMiB)->size(), 4 * kMiB);
  EXPECT_EQ(Take(pool, kMiB / 2)->size(), kMiB);
}

TEST_F(MemoryPoolTest, AFileOfTheChosenNodeServesThoseWhoWantNoneOrThatOne) {
  PoolClass wanted = Files(kMiB, 1);
  wanted.pages.numa_node = 0;
  MemoryPool pool(os_, node_, {wanted});
  Refill(pool);
  EXPECT_FALSE(Take(pool, kMiB, kNdkPageBytes, 1).has_value());
  EXPECT_TRUE(Take(pool, kMiB, kNdkPageBytes, 0).has_value());
  Refill(pool);
  EXPECT_TRUE(Take(pool, kMiB).has_value());
}

TEST_F(MemoryPoolTest, WithoutAChoiceOfPagesAMissCountsOnce) {
  PoolClass large = Files(2 * kMiB, 1);
  large.pages.page_bytes = 2 * kMiB;
  MemoryPool pool(os_, node_, {large});
  EXPECT_FALSE(Take(pool, 4 * kMiB, std::nullopt).has_value());
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).misses, 1u);
  EXPECT_EQ(ServiceOf(pool, 2 * kMiB).misses, 0u);
  EXPECT_FALSE(Take(pool, 4 * kMiB, 2 * kMiB).has_value());
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
  EXPECT_THAT(GiveRoom(pool, 5 * kMiB).status(), FailsWith(ErrorReason::QUOTA_MEMORY_BYTES)) << "above the limit";
  EXPECT_EQ(Ready(pool), (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(GiveRoom(pool, 3 * kMiB)->freed.size(), 1u);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), 4 * kMiB);
  Refill(pool);
  EXPECT_EQ(Ready(pool), (std::vector<uint32_t>{1, 0}));
  charges_.clear();
  EXPECT_TRUE(GiveRoom(pool, 3 * kMiB)->freed.empty()) << "there is room";
}

TEST_F(MemoryPoolTest, ASessionThatMayNotTakesNothingFromIt) {
  node_ = LedgerUpTo(4 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 2), Files(2 * kMiB, 1)});
  while (Ready(pool) != std::vector<uint32_t>{2, 0}) {
    ASSERT_NE(pool.RefillPiece().bytes, 0u);
  }
  ASSERT_NE(pool.RefillPiece().bytes, 0u);
  const auto refused = [] { return MakeError(ErrorReason::QUOTA_MEMORY_OBJECTS); };
  for (const std::optional<PageWish>& wish : {std::optional<PageWish>(), std::optional<PageWish>(PageWish{})}) {
    for (const uint64_t bytes : {kMiB, 4 * kMiB}) {
      EXPECT_THAT(pool.Give(bytes, wish, refused).status(), FailsWith(ErrorReason::QUOTA_MEMORY_OBJECTS));
      EXPECT_EQ(node_->used(Resource::kMemoryBytes), 4 * kMiB);
    }
  }
  EXPECT_EQ(ServiceOf(pool, kNdkPageBytes).hits, 0u);
  Refill(pool);
  EXPECT_EQ(Ready(pool), (std::vector<uint32_t>{2, 1})) << "nor from what was being made";
}

TEST_F(MemoryPoolTest, AFileThatIsTooSmallServesWithTheRoomOfOthers) {
  node_ = LedgerUpTo(4 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 2), Files(2 * kMiB, 1)});
  Refill(pool);
  const auto given = pool.Give(4 * kMiB, PageWish{}, [this]() -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(charges_.emplace_back(), Charge::Take(node_, Resource::kMemoryBytes, 4 * kMiB));
    return absl::OkStatus();
  });
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->ready->size(), 2 * kMiB);
  EXPECT_EQ(given->freed.size(), 2u);
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
    if (Take(pool, kMiB).has_value()) {
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

// The fault of a large page waits for locks that are held while such pages are made.
TEST_F(MemoryPoolTest, TheThreadLetsAClientMapItsLargePagesBeforeItMakesMore) {
  os_.UseSmallPages();
  PoolClass large = Files(2 * kMiB, 2);
  large.pages.page_bytes = 2 * kMiB;
  MemoryPool pool(os_, node_, {large});
  const PoolRefiller refiller(pool, RefillBounds{});
  while (pool.state().refilled_files < 1) {
    std::this_thread::yield();
  }
  // The third file is begun later than this, whether the second is ready or being made.
  const auto given = std::chrono::steady_clock::now();
  ASSERT_TRUE(Take(pool, 2 * kMiB, 2 * kMiB).has_value());
  while (pool.state().refilled_files < 3) {
    std::this_thread::yield();
  }
  EXPECT_GE(std::chrono::steady_clock::now() - given, std::chrono::milliseconds(50));
}

// The refilling thread would take it back at once.
TEST_F(MemoryPoolTest, WhatGaveWayIsTheSessionsAndNobodyElses) {
  node_ = LedgerUpTo(2 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 2)});
  const PoolRefiller refiller(pool, RefillBounds{});
  while (Ready(pool) != std::vector<uint32_t>{2}) {
    std::this_thread::yield();
  }
  absl::StatusOr<Charge> charged = absl::InternalError("not called");
  const auto given = pool.Give(kMiB, PageWish{}, [&] {
    for (int turn = 0; turn < 1000; ++turn) {
      std::this_thread::yield();
    }
    charged = Charge::Take(node_, Resource::kMemoryBytes, kMiB);
    return charged.status();
  });
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_TRUE(given->ready.has_value());
}

// The thread tries again after a second if it had no room.
TEST_F(MemoryPoolTest, TheThreadRefillsWhatGaveWay) {
  node_ = LedgerUpTo(2 * kMiB);
  MemoryPool pool(os_, node_, {Files(kMiB, 2)});
  const PoolRefiller refiller(pool, RefillBounds{});
  while (Ready(pool) != std::vector<uint32_t>{2}) {
    std::this_thread::yield();
  }
  EXPECT_EQ(GiveRoom(pool, kMiB)->freed.size(), 1u);
  charges_.clear();
  while (pool.state().refilled_files < 3) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{2});
}

TEST_F(MemoryPoolTest, ASuspendedPoolHasNothingUntilItResumes) {
  MemoryPool pool(os_, node_, {Files(kMiB, 3)});
  while (Ready(pool) != std::vector<uint32_t>{2}) {
    ASSERT_NE(pool.RefillPiece().bytes, 0u);
  }
  ASSERT_NE(pool.RefillPiece().bytes, 0u);
  EXPECT_EQ(pool.Suspend().size(), 2u);
  EXPECT_EQ(node_->used(Resource::kMemoryBytes), 0u);
  Refill(pool);
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{0});
  EXPECT_FALSE(Take(pool, kMiB).has_value());
  pool.Resume();
  Refill(pool);
  EXPECT_EQ(Ready(pool), std::vector<uint32_t>{3});
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
