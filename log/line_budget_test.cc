#include "log/line_budget.h"

#include <gtest/gtest.h>

#include "base/manual_clock_fake.h"

namespace rnicd::log {
namespace {

class LineBudgetTest : public testing::Test {
 protected:
  // Lines admitted of `count`.
  uint32_t Admitted(uint32_t count) {
    uint32_t admitted = 0;
    for (uint32_t line = 0; line < count; ++line) {
      admitted += budget_.Admit().has_value() ? 1 : 0;
    }
    return admitted;
  }

  ManualClock clock_;
  LineBudget budget_{clock_, {.burst = 3, .interval = std::chrono::seconds(10)}};
};

TEST_F(LineBudgetTest, AdmitsABurstAndDropsTheRest) { EXPECT_EQ(Admitted(100), 3u); }

TEST_F(LineBudgetTest, AdmitsOneLineAnIntervalAfterTheBurst) {
  Admitted(3);
  for (int interval = 0; interval < 5; ++interval) {
    clock_.Advance(std::chrono::seconds(9));
    EXPECT_EQ(Admitted(10), 0u);
    clock_.Advance(std::chrono::seconds(1));
    EXPECT_EQ(Admitted(10), 1u);
  }
}

TEST_F(LineBudgetTest, TheNextAdmittedLineTellsHowManyWereDropped) {
  EXPECT_EQ(budget_.Admit(), 0u);
  Admitted(2 + 41);
  clock_.Advance(std::chrono::seconds(20));
  EXPECT_EQ(budget_.Admit(), 41u);
  EXPECT_EQ(budget_.Admit(), 0u);
}

TEST_F(LineBudgetTest, APauseSavesNoMoreThanTheBurst) {
  Admitted(3);
  clock_.Advance(std::chrono::hours(1000));
  EXPECT_EQ(Admitted(100), 3u);
}

TEST_F(LineBudgetTest, AnIntervalBeginsWithTheFirstLineAfterAPause) {
  clock_.Advance(std::chrono::seconds(9));
  Admitted(3);
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_EQ(Admitted(1), 0u);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Admitted(1), 1u);
}

}  // namespace
}  // namespace rnicd::log
