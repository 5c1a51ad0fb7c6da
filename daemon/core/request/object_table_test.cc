#include "daemon/core/request/object_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace rnicd::core {
namespace {

using Table = ObjectTable<MemoryRegionId, int>;

TEST(ObjectTable, FindsWhatWasInserted) {
  Table table(12345);
  const MemoryRegionId one = table.Insert(std::make_shared<int>(1));
  const MemoryRegionId two = table.Insert(std::make_shared<int>(2));
  EXPECT_NE(one, two);
  EXPECT_EQ(*table.Find(one), 1);
  EXPECT_EQ(*table.Find(two), 2);
}

TEST(ObjectTable, ARemovedIdNamesNothingEvenWhenItsSlotIsUsedAgain) {
  Table table(1);
  const MemoryRegionId old_id = table.Insert(std::make_shared<int>(1));
  EXPECT_EQ(*table.Remove(old_id), 1);
  EXPECT_EQ(table.Find(old_id), nullptr);
  EXPECT_EQ(table.Remove(old_id), nullptr);
  const MemoryRegionId new_id = table.Insert(std::make_shared<int>(2));
  EXPECT_NE(new_id, old_id);
  EXPECT_EQ(table.Find(old_id), nullptr);
  EXPECT_EQ(*table.Find(new_id), 2);
}

TEST(ObjectTable, TheIdsOfAnotherTableNameNothing) {
  Table mine(100);
  Table theirs(900000);
  std::vector<MemoryRegionId> ids;
  for (int index = 0; index < 50; ++index) {
    mine.Insert(std::make_shared<int>(index));
    ids.push_back(theirs.Insert(std::make_shared<int>(index)));
  }
  for (const MemoryRegionId id : ids) {
    EXPECT_EQ(mine.Find(id), nullptr);
  }
}

TEST(ObjectTable, IdZeroIsNeverGivenWhateverTheSeed) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{UINT32_MAX}, uint64_t{UINT32_MAX} - 1, ~uint64_t{0}}) {
    Table table(seed);
    std::set<MemoryRegionId> seen;
    for (int index = 0; index < 10; ++index) {
      const MemoryRegionId id = table.Insert(std::make_shared<int>(index));
      EXPECT_NE(id.value >> 32, 0u) << "seed " << seed;
      EXPECT_TRUE(seen.insert(id).second);
      table.Remove(id);
    }
    EXPECT_EQ(table.Find(MemoryRegionId{}), nullptr);
  }
}

TEST(ObjectTable, AGuessedIndexBeyondTheTableNamesNothing) {
  Table table(7);
  const MemoryRegionId id = table.Insert(std::make_shared<int>(1));
  EXPECT_EQ(table.Find(MemoryRegionId{id.value + 1}), nullptr);
  EXPECT_EQ(table.Find(MemoryRegionId{~uint64_t{0}}), nullptr);
  EXPECT_EQ(table.Remove(MemoryRegionId{id.value | 0xffffffff}), nullptr);
}

TEST(ObjectTable, AllListsTheLivingAndTakeAllForgetsThem) {
  Table table(7);
  const MemoryRegionId gone = table.Insert(std::make_shared<int>(1));
  const MemoryRegionId kept = table.Insert(std::make_shared<int>(2));
  table.Remove(gone);
  ASSERT_EQ(table.All().size(), 1u);
  EXPECT_EQ(table.All().front().first, kept);
  const Table::Entries taken = table.TakeAll();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(*taken.front().second, 2);
  EXPECT_TRUE(table.All().empty());
  EXPECT_EQ(table.Find(kept), nullptr);
  EXPECT_NE(table.Insert(std::make_shared<int>(3)), kept) << "generations go on afterwards";
}

TEST(ObjectTable, RacingThreadsNeverShareAnId) {
  Table table(3);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&table, thread] {
      for (int round = 0; round < 1000; ++round) {
        const MemoryRegionId id = table.Insert(std::make_shared<int>(thread));
        ASSERT_EQ(*table.Find(id), thread);
        ASSERT_EQ(*table.Remove(id), thread);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(table.All().empty());
}

}  // namespace
}  // namespace rnicd::core
