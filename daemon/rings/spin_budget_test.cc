#include "daemon/rings/spin_budget.h"

#include <gtest/gtest.h>

namespace rnicd::rings {
namespace {

using std::chrono::milliseconds;

TEST(SpinBudgetTest, ATenantAloneMayUseAllOfIt) {
  const Instant now;
  SpinBudget budget(50, now);
  budget.AddRing(1);
  EXPECT_TRUE(budget.Allows(1, now));
  budget.Spend(1, milliseconds(49));
  EXPECT_TRUE(budget.Allows(1, now));
  budget.Spend(1, milliseconds(1));
  EXPECT_FALSE(budget.Allows(1, now));
}

TEST(SpinBudgetTest, TenantsHaveEqualParts) {
  const Instant now;
  SpinBudget budget(50, now);
  budget.AddRing(1);
  budget.AddRing(2);
  budget.Spend(1, milliseconds(25));
  EXPECT_FALSE(budget.Allows(1, now));
  EXPECT_TRUE(budget.Allows(2, now));
  budget.RemoveRing(2);
  EXPECT_TRUE(budget.Allows(1, now));
}

TEST(SpinBudgetTest, ItComesBackWithTheNextWindow) {
  const Instant now;
  SpinBudget budget(10, now);
  budget.AddRing(1);
  budget.Spend(1, milliseconds(10));
  EXPECT_FALSE(budget.Allows(1, now + milliseconds(99)));
  EXPECT_TRUE(budget.Allows(1, now + milliseconds(100)));
}

TEST(SpinBudgetTest, ZeroPercentAllowsNothing) {
  const Instant now;
  SpinBudget budget(0, now);
  budget.AddRing(1);
  EXPECT_FALSE(budget.Allows(1, now));
}

}  // namespace
}  // namespace rnicd::rings
