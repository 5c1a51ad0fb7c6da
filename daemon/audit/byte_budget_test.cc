#include "daemon/audit/byte_budget.h"

#include <gtest/gtest.h>

namespace rnicd::audit {
namespace {

constexpr Instant kStart{std::chrono::hours(1)};
constexpr std::chrono::seconds kSecond{1};
constexpr auto kSavedSeconds = static_cast<uint64_t>(ByteBudget::kSaved.count());

uint64_t TakeAll(ByteBudget& budget, size_t bytes, Instant now) {
  uint64_t taken = 0;
  while (budget.Take(bytes, now)) {
    taken += bytes;
  }
  return taken;
}

TEST(ByteBudget, AllowsWhatWasSavedAndThenItsRate) {
  ByteBudget budget(1000);
  EXPECT_EQ(TakeAll(budget, 10, kStart), kSavedSeconds * 1000);
  EXPECT_EQ(TakeAll(budget, 10, kStart), 0u);
  EXPECT_EQ(TakeAll(budget, 10, kStart + kSecond), 1000u);
  EXPECT_EQ(TakeAll(budget, 10, kStart + 3 * kSecond), 2000u);
}

TEST(ByteBudget, SavesNoMoreThanItsBurst) {
  ByteBudget budget(1000);
  TakeAll(budget, 10, kStart);
  EXPECT_EQ(TakeAll(budget, 10, kStart + 1000 * kSecond), kSavedSeconds * 1000);
}

TEST(ByteBudget, ADebtIsPaidFirst) {
  ByteBudget budget(1000);
  TakeAll(budget, 10, kStart);
  budget.Charge(5000, kStart);
  EXPECT_FALSE(budget.HasRoom(kStart));
  EXPECT_FALSE(budget.Take(1, kStart + 5 * kSecond));
  EXPECT_TRUE(budget.Take(1000, kStart + 6 * kSecond));
}

TEST(ByteBudget, IsFullWhenEverythingHasBeenRenewed) {
  ByteBudget budget(1000);
  EXPECT_TRUE(budget.IsFull(kStart));
  EXPECT_TRUE(budget.Take(2000, kStart));
  EXPECT_FALSE(budget.IsFull(kStart + kSecond));
  EXPECT_TRUE(budget.IsFull(kStart + 2 * kSecond));
}

TEST(ByteBudget, ZeroIsNoLimit) {
  ByteBudget budget(0);
  EXPECT_TRUE(budget.Take(size_t{1} << 40, kStart));
  EXPECT_TRUE(budget.Take(size_t{1} << 40, kStart));
  EXPECT_TRUE(budget.HasRoom(kStart));
}

}  // namespace
}  // namespace rnicd::audit
