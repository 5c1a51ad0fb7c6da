// `rnicctl selftest`: what somebody with a card runs first.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kChecks = 13;
constexpr uint32_t kRowOfTheGap = 67;

class RnicctlSelftest : public DaemonTest {
 protected:
  explicit RnicctlSelftest(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  RnicctlRun Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "selftest");
    return RunRnicctl(daemon(), arguments);
  }
};

// A rule that does not hold is found: of row 67, where registrations stand in for fast ones.
TEST_F(RnicctlSelftest, EveryRuleHoldsOrIsAKnownGap) {
  const RnicctlRun run = Run({"--no-bench", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.errors << run.output;
  const nlohmann::json report = run.json();
  ASSERT_EQ(report["checks"].size(), kChecks);
  for (const nlohmann::json& check : report["checks"]) {
    const bool gap = check["row"] == kRowOfTheGap && report["fast_engine"] == "registration";
    EXPECT_EQ(check["outcome"], gap ? "known gap" : "holds") << check;
    EXPECT_EQ(check["message"].get<std::string>().empty(), !gap) << check;
  }
  EXPECT_EQ(report["held"], true);
  EXPECT_TRUE(report["timings"].empty());
}

TEST_F(RnicctlSelftest, TimingsFollowTheChecks) {
  const RnicctlRun run = Run({"--adapter", AdapterUnderTest()});
  EXPECT_EQ(run.exit_code, 0) << run.errors << run.output;
  const std::vector<std::string> lines = run.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.front().starts_with("adapter " + AdapterUnderTest() + " of provider ")) << run.output;
  EXPECT_TRUE(lines.back().starts_with(std::to_string(kChecks) + " checks: ")) << run.output;
  EXPECT_TRUE(lines.back().ends_with(", 0 fail")) << run.output;
  EXPECT_NE(run.output.find("microseconds"), std::string::npos) << run.output;
}

TEST_F(RnicctlSelftest, AnUnknownAdapterIsNamed) {
  const RnicctlRun run = Run({"--adapter=mlx5_7"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.errors.find("there is no adapter 'mlx5_7'"), std::string::npos) << run.errors;
}

class RnicctlSelftestSmallCard : public RnicctlSelftest {
 protected:
  RnicctlSelftestSmallCard() : RnicctlSelftest({ProviderFlag("max_fast_register_pages", 64)}) {}
};

TEST_F(RnicctlSelftestSmallCard, WhatTheCardCannotDoIsNotMeasured) {
  const RnicctlRun run = Run({"--json"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  const nlohmann::json report = run.json();
  std::vector<std::string> refused;
  for (const nlohmann::json& timing : report["timings"]) {
    EXPECT_EQ(timing["rounds"] == 0, !timing["message"].get<std::string>().empty()) << timing;
    if (!timing["message"].get<std::string>().empty()) {
      refused.push_back(timing["what"]);
    }
  }
  EXPECT_EQ(refused, std::vector<std::string>{"a fast registration of 256 scattered pages, and its invalidation"});
}

}  // namespace
}  // namespace rnicd::test
