// `rnicctl demo fast-register`: the real program against the real daemon, as people and scripts run it.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

class RnicctlDemo : public DaemonTest {
 protected:
  explicit RnicctlDemo(const std::vector<std::string>& flags = {}) : DaemonTest(flags) {}

  RnicctlRun Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"demo", "fast-register"});
    return RunRnicctl(daemon(), arguments);
  }
};

// True when a line of the output has this number and all of these words.
bool HasStep(const RnicctlRun& run, size_t number, const std::vector<std::string>& words) {
  const std::vector<std::string> lines = run.lines();
  if (number > lines.size()) {
    return false;
  }
  const std::string& line = lines[number - 1];
  const std::string prefix = (number < 10 ? " " : "") + std::to_string(number) + ". ";
  return line.starts_with(prefix) && std::all_of(words.begin(), words.end(), [&line](const std::string& word) {
           return line.find(word) != std::string::npos;
         });
}

TEST_F(RnicctlDemo, EightMebibytesHoldStepByStep) {
  const RnicctlRun run = Run({"--seed=7"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_TRUE(run.errors.empty()) << run.errors;
  const std::vector<std::vector<std::string>> steps = {
      {"two sessions", "queue pair", " us)"},
      {"the owner gets 8 MiB"},
      {"2048 pages", "logical addresses", " us)"},
      {"shuffled with seed 7", "separate pieces"},
      {"ONE work request registers all 2048 pages", "token 0x", " us)"},
      {"the peer writes 8 MiB", " us)"},
      {"all 8388608 bytes are in the right page"},
      {"reads all of it back", " us)"},
      {"the owner invalidates", " us)"},
      {"refused with STATUS_ACCESS_VIOLATION", "not a byte"},
      {"both queue pairs are dead"},
  };
  for (size_t index = 0; index < steps.size(); ++index) {
    EXPECT_TRUE(HasStep(run, index + 1, steps[index])) << "step " << index + 1 << " of\n" << run.output;
  }
  ASSERT_EQ(run.lines().size(), steps.size() + 1) << run.output;
  EXPECT_TRUE(run.lines().back().starts_with("It held: 2048 pages, one work request, one token;")) << run.output;
}

TEST_F(RnicctlDemo, JsonHasTheSameStepsAndFigures) {
  const RnicctlRun run = Run({"--pages=16", "--seed=3", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  const Json json = run.json();
  EXPECT_EQ(json["demo"], "fast-register");
  EXPECT_EQ(json["pages"], 16);
  EXPECT_EQ(json["bytes"], 65536);
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["held"], true);
  EXPECT_NE(json["remote_token"], 0);
  ASSERT_EQ(json["steps"].size(), 11u);
  EXPECT_EQ(json["steps"][0]["number"], 1);
  EXPECT_TRUE(json["steps"][4]["microseconds"].is_number());
  EXPECT_FALSE(json["steps"][10].contains("microseconds"));
}

TEST_F(RnicctlDemo, OnePageAndManyPagesHold) {
  const RnicctlRun one = Run({"--pages=1"});
  EXPECT_EQ(one.exit_code, 0) << one.errors << one.output;
  EXPECT_TRUE(one.lines().back().starts_with("It held: 1 page, ")) << one.output;
  const RnicctlRun many = Run({"--pages=20000"});
  EXPECT_EQ(many.exit_code, 0) << many.errors << many.output;
  EXPECT_TRUE(many.lines().back().starts_with("It held: 20000 pages, ")) << many.output;
}

TEST_F(RnicctlDemo, EachRunShufflesAnewUnlessToldTheSeed) {
  EXPECT_NE(Run({"--pages=4", "--json"}).json()["seed"], Run({"--pages=4", "--json"}).json()["seed"]);
}

class RnicctlDemoSmallCard : public RnicctlDemo {
 protected:
  RnicctlDemoSmallCard() : RnicctlDemo({ProviderFlag("max_fast_register_pages", 64)}) {}
};

TEST_F(RnicctlDemoSmallCard, MorePagesThanTheCardTakesEndTheDemoWithASentence) {
  EXPECT_EQ(Run({"--pages=64"}).exit_code, 0);
  const RnicctlRun run = Run({"--pages=65"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.errors.find("PAGE_COUNT_UNSUPPORTED"), std::string::npos) << run.errors;
  EXPECT_EQ(run.output.find("It held"), std::string::npos) << run.output;
  EXPECT_TRUE(HasStep(run, 4, {"shuffled"})) << run.output;
  const RnicctlRun json = Run({"--pages=65", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.json()["held"], false);
  EXPECT_EQ(json.json()["steps"].size(), 4u);
}

}  // namespace
}  // namespace rnicd::test
