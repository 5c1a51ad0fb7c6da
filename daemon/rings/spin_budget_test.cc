#include "daemon/rings/spin_budget.h"

#include <gtest/gtest.h>

namespace rnicd::rings {
namespace {

using std::chrono::milliseconds;

// No thread runs there, so the client runs elsewhere.
constexpr uint32_t kElsewhere = 1'000'000;

SpinOptions Percent(uint32_t percent) { return {.longest = milliseconds(1), .percent = percent}; }

bool Allows(SpinBudget& budget, uint64_t tenant, Instant now) { return budget.Allows(tenant, kElsewhere, now, now); }

TEST(SpinBudgetTest, ATenantAloneMayUseAllOfIt) {
  const Instant now;
  SpinBudget budget(Percent(50), now);
  budget.AddRing(1);
  EXPECT_TRUE(Allows(budget, 1, now));
  budget.Spend(1, milliseconds(49));
  EXPECT_TRUE(Allows(budget, 1, now));
  budget.Spend(1, milliseconds(1));
  EXPECT_FALSE(Allows(budget, 1, now));
}

TEST(SpinBudgetTest, TenantsHaveEqualParts) {
  const Instant now;
  SpinBudget budget(Percent(50), now);
  budget.AddRing(1);
  budget.AddRing(2);
  budget.Spend(1, milliseconds(25));
  EXPECT_FALSE(Allows(budget, 1, now));
  EXPECT_TRUE(Allows(budget, 2, now));
  budget.RemoveRing(2);
  EXPECT_TRUE(Allows(budget, 1, now));
}

TEST(SpinBudgetTest, ItComesBackWithTheNextWindow) {
  const Instant now;
  SpinBudget budget(Percent(10), now);
  budget.AddRing(1);
  budget.Spend(1, milliseconds(10));
  EXPECT_FALSE(Allows(budget, 1, now + milliseconds(99)));
  EXPECT_TRUE(Allows(budget, 1, now + milliseconds(100)));
}

TEST(SpinBudgetTest, ZeroPercentAllowsNothing) {
  const Instant now;
  SpinBudget budget(Percent(0), now);
  budget.AddRing(1);
  EXPECT_FALSE(Allows(budget, 1, now));
}

TEST(SpinBudgetTest, NotForAClientOfThisProcessorAndNotForLong) {
  const Instant now;
  SpinBudget budget(Percent(50), now);
  budget.AddRing(1);
  EXPECT_FALSE(budget.Allows(1, ring::CurrentCpu(), now, now));
  EXPECT_FALSE(budget.Allows(1, kElsewhere, now, now + milliseconds(1)));
}

}  // namespace
}  // namespace rnicd::rings
