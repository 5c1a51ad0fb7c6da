#include <sstream>

#include "client/cpp/client_options.h"
#include "client/ctl/commands.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace rnicd::ctl {
namespace {

struct DemoRun {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

DemoRun RunDemo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"demo", "--socket-dir=" + DefaultSocketDir() + "-of-nobody"});
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = RunRnicctl(arguments, out, err);
  return DemoRun{.exit_code = exit_code, .output = out.str(), .errors = err.str()};
}

TEST(Demo, MistakesAreNamedAndExitWithTwo) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "there is one demo; say 'rnicctl demo fast-register'"},
      {{"slow-register"}, "there is one demo; say 'rnicctl demo fast-register'"},
      {{"fast-register", "--pages", "0"}, "option --pages: '0' is not a number from 1 to 262144"},
      {{"fast-register", "--pages=262145"}, "option --pages: '262145' is not a number from 1 to 262144"},
      {{"fast-register", "--seed=-1"}, "option --seed: '-1' is not a number from 0 to 4294967295"},
  };
  for (const Case& wrong : cases) {
    const DemoRun run = RunDemo(wrong.arguments);
    EXPECT_EQ(run.exit_code, 2) << wrong.message;
    EXPECT_EQ(run.errors, "rnicctl: " + wrong.message + "\n");
    EXPECT_TRUE(run.output.empty()) << run.output;
  }
}

TEST(Demo, WithoutDaemonItDoesNotHold) {
  const DemoRun text = RunDemo({"fast-register"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_TRUE(text.output.empty()) << text.output;
  EXPECT_NE(text.errors.find("no answer from rnicd"), std::string::npos) << text.errors;
  const DemoRun json = RunDemo({"fast-register", "--seed=5", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  const nlohmann::json report = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_TRUE(report.is_object()) << json.output;
  EXPECT_EQ(report["held"], false);
  EXPECT_EQ(report["seed"], 5);
  EXPECT_TRUE(report["steps"].empty());
}

}  // namespace
}  // namespace rnicd::ctl
