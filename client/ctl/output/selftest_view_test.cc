#include "client/ctl/output/views.h"
#include "gmock/gmock.h"

namespace rnicd::ctl {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

SelftestReport Report() {
  return {.adapter = {.name = "rxa", .provider = "verbs", .technology = "rocev2", .fast_engine = "registration"},
          .checks = {{.row = 32, .claim = "a token is dead", .outcome = SelftestOutcome::kHolds},
                     {.row = 67, .claim = "in turn", .outcome = SelftestOutcome::kKnownGap, .message = "early"},
                     {.row = 71, .claim = "bounds", .outcome = SelftestOutcome::kFails, .message = "a byte too far"}},
          .timings = {{.what = "a write", .p50_us = 1.25, .p99_us = 9, .rounds = 5},
                      {.what = "a long list", .message = "too many pages"}}};
}

TEST(SelftestView, AFailureIsSeenAtOnceAndExplained) {
  const SelftestReport report = Report();
  EXPECT_THAT(SelftestCheckText(report.checks[0]), StartsWith("032  a token is dead  "));
  EXPECT_THAT(SelftestCheckText(report.checks[0]), EndsWith("  holds\n"));
  EXPECT_THAT(SelftestCheckText(report.checks[2]), EndsWith("  FAILS\n     a byte too far\n"));
  EXPECT_EQ(SelftestVerdict(report), "\n3 checks: 1 hold, 1 known gap, 1 fail\n");
}

TEST(SelftestView, AKnownGapIsNoFailure) {
  SelftestReport report = Report();
  EXPECT_EQ(SelftestJson(report)["held"], false);
  report.checks.pop_back();
  EXPECT_EQ(SelftestJson(report)["held"], true);
  EXPECT_EQ(SelftestJson(report)["checks"][1]["outcome"], "known gap");
}

TEST(SelftestView, WhatWasNotMeasuredSaysWhy) {
  const SelftestReport report = Report();
  EXPECT_THAT(SelftestTimingText(report.timings[0]), HasSubstr("1.2        9.0\n"));
  EXPECT_THAT(SelftestTimingText(report.timings[1]), EndsWith(" too many pages\n"));
  EXPECT_EQ(SelftestJson(report)["timings"][1]["message"], "too many pages");
}

}  // namespace
}  // namespace rnicd::ctl
