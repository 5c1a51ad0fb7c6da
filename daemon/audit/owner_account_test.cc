#include "daemon/audit/owner_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::audit {
namespace {

using std::chrono::seconds;

constexpr uint64_t kRate = 2000;
constexpr uint64_t kSession = 7;

class OwnerAccountTest : public ::testing::Test {
 protected:
  Moment Now() const { return {.instant = Instant(now_), .wall = WallTime(now_)}; }
  AuditLine Line(const std::string& what, core::Role role = core::Role::kWorkload) const {
    return {.time = Now().wall, .what = what, .caller = core::Caller{.uid = 5, .role = role}, .session_id = kSession};
  }
  AuditLine Refusal(const std::string& what, core::Role role = core::Role::kWorkload) const {
    AuditLine line = Line(what, role);
    line.code = absl::StatusCode::kNotFound;
    line.error.reason = ErrorReason::OBJECT_NOT_FOUND;
    return line;
  }
  Fate Add(AuditLine line) { return account_.Add(std::move(line), Now(), lines_); }
  // Adds so many of the line, and returns how many had the fate.
  uint64_t Add(const AuditLine& line, uint64_t count, Fate fate) {
    uint64_t met = 0;
    for (uint64_t added = 0; added < count; ++added) {
      met += Add(line) == fate ? 1 : 0;
    }
    return met;
  }
  void UseUpBudget() {
    while (Add(Line("MemoryService.CreateMr")) == Fate::kWritten) {
    }
    account_.TakeAll(Now(), lines_);
    lines_.clear();
  }
  // Lets time pass as the log does, and returns the lines that came meanwhile.
  std::vector<AuditLine> Pass(seconds time) {
    for (const seconds end = now_ + time; now_ < end;) {
      now_ += seconds(1);
      account_.TakeDue(Now(), lines_);
    }
    return std::exchange(lines_, {});
  }
  std::vector<AuditLine> Written() { return std::exchange(lines_, {}); }
  static uint64_t Decisions(const std::vector<AuditLine>& lines) {
    uint64_t sum = 0;
    for (const AuditLine& line : lines) {
      sum += DecisionsOf(line);
    }
    return sum;
  }
  static size_t Bytes(const std::vector<AuditLine>& lines) {
    size_t bytes = 0;
    for (const AuditLine& line : lines) {
      bytes += Format(line).size();
    }
    return bytes;
  }

  seconds now_{1000};
  OwnerAccount account_{"uid 5", kRate};
  std::vector<AuditLine> lines_;
};

TEST_F(OwnerAccountTest, RepeatedRefusalsAreOneLineWithTheirNumberAndTimes) {
  EXPECT_EQ(Add(Refusal("x")), Fate::kWritten);
  EXPECT_EQ(Add(Refusal("x"), 10, Fate::kMerged), 10u);
  ASSERT_EQ(Written().size(), 1u);
  const std::vector<AuditLine> counts = Pass(seconds(1));
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].what, "x");
  EXPECT_EQ(counts[0].times, 10u);
  EXPECT_EQ(counts[0].first, WallTime(seconds(1000)));
  EXPECT_EQ(counts[0].last, WallTime(seconds(1000)));
  EXPECT_EQ(counts[0].time, WallTime(seconds(1001)));
}

TEST_F(OwnerAccountTest, ARefusalThatSaysSomethingElseIsALineOfItsOwn) {
  AuditLine other_reason = Refusal("x");
  other_reason.error.reason = ErrorReason::OBJECT_CLOSING;
  AuditLine other_field = Refusal("x");
  other_field.error.field = "pd_id";
  AuditLine other_session = Refusal("x");
  other_session.session_id = kSession + 1;
  for (const AuditLine& line : {Refusal("x"), Refusal("y"), other_reason, other_field, other_session}) {
    EXPECT_EQ(Add(line), Fate::kWritten) << Format(line);
  }
}

TEST_F(OwnerAccountTest, ThePeriodGrowsWhileItGoesOnAndStartsAnewAfterwards) {
  std::vector<int64_t> times;
  for (int second = 0; second < 200; ++second) {
    Add(Refusal("x"));
    Add(Refusal("x"));
    for (const AuditLine& line : Pass(seconds(1))) {
      if (line.times > 0) {
        times.push_back((line.time - WallTime(seconds(1000))) / seconds(1));
      }
    }
  }
  EXPECT_EQ(times, (std::vector<int64_t>{1, 1 + 2, 3 + 4, 7 + 8, 15 + 16, 31 + 32, 63 + 60, 123 + 60}));
  Pass(seconds(120));
  EXPECT_EQ(Add(Refusal("x")), Fate::kWritten) << "long after";
}

TEST_F(OwnerAccountTest, NoDecisionIsLostWhateverHappens) {
  uint64_t decisions = 0;
  uint64_t told = 0;
  for (int round = 0; round < 100; ++round) {
    for (int kind = 0; kind < 50; ++kind) {
      Add(Refusal("x" + std::to_string(kind)));
      Add(Line("y"));
      Add(Line(kind % 2 == 0 ? "SessionService.OpenSession" : "session.end"));
      decisions += 3;
    }
    told += Decisions(Pass(seconds(round % 3)));
  }
  account_.TakeAll(Now(), lines_);
  EXPECT_EQ(told + Decisions(Written()), decisions);
}

TEST_F(OwnerAccountTest, TheEndOfASessionTellsItsCountsFirst) {
  Add(Refusal("x"), 5, Fate::kMerged);
  Written();
  Add(Line("session.end"));
  const std::vector<AuditLine> lines = Written();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].times, 4u);
  EXPECT_EQ(lines[1].what, "session.end");
}

TEST_F(OwnerAccountTest, ACountWaitsForTheBudget) {
  UseUpBudget();
  EXPECT_EQ(Add(Refusal("x"), 3, Fate::kMerged), 3u);
  while (Add(Line("y", core::Role::kWorkload)) == Fate::kWritten) {
  }
  Written();
  // The line that reports the lines left out exceeds the budget at first.
  const std::vector<AuditLine> lines = Pass(seconds(10));
  const auto count = std::find_if(lines.begin(), lines.end(), [](const AuditLine& line) { return line.what == "x"; });
  ASSERT_NE(count, lines.end());
  EXPECT_EQ(count->times, 3u);
}

TEST_F(OwnerAccountTest, AFloodOfAllKindsWritesItsRateAndNoMore) {
  constexpr int kSeconds = 100;
  size_t bytes = 0;
  for (int second = 0; second < kSeconds; ++second) {
    for (int kind = 0; kind < 40; ++kind) {
      Add(Refusal("x" + std::to_string(second) + "/" + std::to_string(kind)));
      Add(Refusal("x"));
      Add(Line("y"));
    }
    bytes += Bytes(Pass(seconds(1)));
  }
  EXPECT_LE(bytes, kRate * (kSeconds + ByteBudget::kSaved.count()));
  EXPECT_GT(bytes, kRate * kSeconds / 2) << "what is allowed is written";
}

TEST_F(OwnerAccountTest, AFloodOfSessionsIsMergedAndWritesItsRateAndNoMore) {
  constexpr int kSeconds = 100;
  size_t bytes = 0;
  for (int second = 0; second < kSeconds; ++second) {
    for (int count = 0; count < 20; ++count) {
      EXPECT_NE(Add(Line("SessionService.OpenSession")), Fate::kLeftOut);
      EXPECT_NE(Add(Line("session.end")), Fate::kLeftOut);
    }
    bytes += Bytes(Pass(seconds(1)));
  }
  EXPECT_LE(bytes, kRate * (kSeconds + ByteBudget::kSaved.count()));
}

TEST_F(OwnerAccountTest, AFloodHidesNoSession) {
  UseUpBudget();
  EXPECT_EQ(Add(Line("y")), Fate::kLeftOut);
  EXPECT_EQ(Add(Line("SessionService.OpenSession")), Fate::kWritten);
  EXPECT_EQ(Add(Line("session.end")), Fate::kWritten);
}

TEST_F(OwnerAccountTest, WhatIsLeftOutIsSaidWithItsNumberAndTimes) {
  UseUpBudget();
  EXPECT_EQ(Add(Line("y"), 10, Fate::kLeftOut), 10u);
  const std::vector<AuditLine> lines = Pass(seconds(1));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].left_out_of, "uid 5");
  EXPECT_EQ(lines[0].times, 10u);
  EXPECT_EQ(lines[0].first, WallTime(seconds(1000)));
  EXPECT_TRUE(Pass(seconds(300)).empty()) << "and once";
}

TEST_F(OwnerAccountTest, OperatorsAndDevicePluginsAreNeverLeftOut) {
  UseUpBudget();
  for (const core::Role role : {core::Role::kOperator, core::Role::kDevicePlugin}) {
    EXPECT_EQ(Add(Line("AdminService.CreateGrant", role)), Fate::kWritten);
    EXPECT_EQ(Add(Refusal("AdminService.CreateGrant", role)), Fate::kWritten);
  }
  for (size_t kind = 0; kind < 2 * OwnerAccount::kRefusalsMax; ++kind) {
    EXPECT_EQ(Add(Refusal(std::to_string(kind), core::Role::kOperator)), Fate::kWritten);
  }
}

TEST_F(OwnerAccountTest, MoreKindsOfRefusalsThanItMergesAreLinesWithinTheBudget) {
  for (size_t kind = 0; kind < OwnerAccount::kRefusalsMax; ++kind) {
    Add(Refusal("x" + std::to_string(kind)));
  }
  EXPECT_EQ(Add(Refusal("y")), Fate::kWritten);
  EXPECT_EQ(Add(Refusal("y")), Fate::kWritten) << "it is not remembered";
  UseUpBudget();
  for (size_t kind = 0; kind < OwnerAccount::kRefusalsMax; ++kind) {
    EXPECT_EQ(Add(Refusal("x" + std::to_string(kind))), Fate::kMerged) << "told when there is room";
  }
  EXPECT_EQ(Add(Refusal("y")), Fate::kLeftOut);
}

TEST_F(OwnerAccountTest, IsIdleWhenAllIsToldAndItsBudgetIsRenewed) {
  EXPECT_TRUE(account_.IsIdle(Now().instant));
  Add(Refusal("x"));
  EXPECT_FALSE(account_.IsIdle(Now().instant));
  Add(Refusal("x"));
  Pass(seconds(10));
  EXPECT_TRUE(account_.IsIdle(Now().instant));
  UseUpBudget();
  EXPECT_FALSE(account_.IsIdle(Now().instant));
  // And the excess of the line that reports the lines left out.
  Pass(2 * ByteBudget::kSaved);
  EXPECT_TRUE(account_.IsIdle(Now().instant));
}

}  // namespace
}  // namespace rnicd::audit
