#include "daemon/rpc/bounds/budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace rnicd::rpc {
namespace {

TEST(Budget, TakesUpToItsLimit) {
  const auto budget = std::make_shared<Budget>(100, nullptr);
  std::optional<BudgetCharge> first = budget->Take(60);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(budget->Take(41).has_value());
  EXPECT_TRUE(budget->Take(40).has_value()) << "and returns it at once";
  EXPECT_EQ(budget->used(), 60u);
  first.reset();
  EXPECT_EQ(budget->used(), 0u);
}

TEST(Budget, NoAmountIsTooLargeToBeRefused) {
  const auto budget = std::make_shared<Budget>(100, nullptr);
  const std::optional<BudgetCharge> one = budget->Take(1);
  EXPECT_FALSE(budget->Take(UINT64_MAX).has_value());
  EXPECT_EQ(budget->used(), 1u);
}

TEST(Budget, WhatTheOneAboveRefusesIsNotTaken) {
  const auto daemon = std::make_shared<Budget>(100, nullptr);
  const auto first = std::make_shared<Budget>(80, daemon);
  const auto second = std::make_shared<Budget>(80, daemon);
  const std::optional<BudgetCharge> charge = first->Take(80);
  EXPECT_FALSE(second->Take(21).has_value());
  EXPECT_EQ(second->used(), 0u);
  EXPECT_EQ(daemon->used(), 80u);
  EXPECT_TRUE(second->Take(20).has_value());
}

TEST(Budget, AResponseIsTakenAboveTheLimitAndThenNothingElse) {
  const auto daemon = std::make_shared<Budget>(1000, nullptr);
  const auto budget = std::make_shared<Budget>(100, daemon);
  {
    const BudgetCharge response = budget->TakeAnyway(150);
    EXPECT_EQ(budget->used(), 150u);
    EXPECT_EQ(daemon->used(), 150u);
    EXPECT_FALSE(budget->Take(1).has_value());
    EXPECT_FALSE(budget->Take(0).has_value());
  }
  EXPECT_EQ(daemon->used(), 0u);
  EXPECT_TRUE(budget->Take(100).has_value());
}

TEST(BudgetCharge, GrowsWithinTheBudget) {
  const auto budget = std::make_shared<Budget>(100, nullptr);
  std::optional<BudgetCharge> charge = budget->Take(10);
  EXPECT_TRUE(charge->Grow(90));
  EXPECT_FALSE(charge->Grow(1));
  EXPECT_EQ(charge->bytes(), 100u);
  charge->Return();
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_FALSE(charge->Grow(1)) << "it is empty";
  EXPECT_FALSE(BudgetCharge().Grow(0));
}

TEST(BudgetCharge, IsReturnedOnceHoweverItMoves) {
  const auto budget = std::make_shared<Budget>(100, nullptr);
  {
    BudgetCharge first = *budget->Take(10);
    BudgetCharge second = std::move(first);
    EXPECT_EQ(budget->used(), 10u);
    second = *budget->Take(20);
    EXPECT_EQ(budget->used(), 20u);
    BudgetCharge& same = second;
    second = std::move(same);
    EXPECT_EQ(budget->used(), 20u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(BudgetCharge, KeepsItsBudget) {
  const auto daemon = std::make_shared<Budget>(100, nullptr);
  auto budget = std::make_shared<Budget>(100, daemon);
  std::optional<BudgetCharge> charge = budget->Take(10);
  budget.reset();
  EXPECT_EQ(daemon->used(), 10u);
  charge.reset();
  EXPECT_EQ(daemon->used(), 0u);
}

TEST(Budget, RemembersItsPeak) {
  const auto daemon = std::make_shared<Budget>(100, nullptr);
  const auto budget = std::make_shared<Budget>(50, daemon);
  EXPECT_TRUE(budget->Take(40).has_value());
  EXPECT_FALSE(budget->Take(60).has_value());
  EXPECT_TRUE(budget->Take(30).has_value());
  EXPECT_EQ(budget->peak(), 40u);
  budget->TakeAnyway(70);
  EXPECT_EQ(budget->peak(), 70u);
  EXPECT_EQ(daemon->peak(), 70u);
}

TEST(Budget, ThreadsNeverTakeMoreThanTheLimitTogether) {
  const auto daemon = std::make_shared<Budget>(100, nullptr);
  std::vector<std::thread> threads;
  for (int count = 0; count < 4; ++count) {
    threads.emplace_back([budget = std::make_shared<Budget>(70, daemon), &daemon] {
      for (int round = 0; round < 10'000; ++round) {
        const std::optional<BudgetCharge> charge = budget->Take(60);
        if (charge.has_value()) {
          EXPECT_LE(daemon->used(), 100u);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(daemon->used(), 0u);
}

}  // namespace
}  // namespace rnicd::rpc
