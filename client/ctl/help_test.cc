#include "client/ctl/commands.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "client/ctl/line/common_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

using testing::HasSubstr;

TEST(Help, EveryCommandIsListedAndExplainedWithExamples) {
  const std::string overview = OverviewHelp();
  for (const CommandSpec& command : Commands()) {
    EXPECT_THAT(overview, HasSubstr("\n  " + std::string(command.name) + " "));
    const std::string help = CommandHelp(command);
    EXPECT_THAT(help, HasSubstr("Usage: rnicctl " + std::string(command.name)));
    EXPECT_THAT(help, HasSubstr("\nExamples:\n  "));
    for (const OptionSpec& option : command.options) {
      EXPECT_THAT(help, HasSubstr("  " + std::string(option.name)));
    }
  }
}

TEST(Help, LinesFitOneHundredAndTwentyColumns) {
  std::string all = OverviewHelp();
  for (const CommandSpec& command : Commands()) {
    all += CommandHelp(command);
  }
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(Help, UnknownCommandIsAMistake) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"help", "nonsense"}, out, err), 2);
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"help", "alloc"}, out, err), 0);
}

TEST(Help, ArgumentOfACommandStandsInItsUsage) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"help", "demo"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("\nUsage: rnicctl demo fast-register [OPTION...]\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n  --pages N "));
  out.str("");
  EXPECT_EQ(RunRnicctl(std::vector<std::string>{"help", "grant"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("\nUsage: rnicctl grant create|list|revoke [ID] [OPTION...]\n"));
}

// Completions that bash, running the script, offers for the last word.
std::string Complete(const std::string& words, int count) {
  // Test programs run in parallel, so the file's name is unique to this process.
  const std::string script = testing::TempDir() + "/rnicctl_completion." + std::to_string(getpid()) + ".sh";
  std::ofstream(script) << BashCompletion(Commands(), CommonOptions()) << "COMP_WORDS=(" << words << ")\n"
                        << "COMP_CWORD=" << count - 1 << "\n_rnicctl\necho \"${COMPREPLY[*]}\"\n";
  FILE* bash = popen(("bash " + script).c_str(), "r");
  std::string output(4096, '\0');
  output.resize(fread(output.data(), 1, output.size(), bash));
  EXPECT_EQ(pclose(bash), 0);
  std::remove(script.c_str());
  return output;
}

TEST(Completion, BashOffersCommandsOptionsAndValues) {
  EXPECT_EQ(Complete("rnicctl re", 2), "register regions reload\n");
  EXPECT_EQ(Complete("rnicctl --socket-dir /x stat", 4), "status\n");
  EXPECT_EQ(Complete("rnicctl register --fl", 3), "--flags\n");
  EXPECT_EQ(Complete("rnicctl status --si", 3), "\n");
  EXPECT_EQ(Complete("rnicctl alloc --page-size ''", 4), "auto 4KiB 2MiB 1GiB\n");
  EXPECT_EQ(Complete("rnicctl completion ba", 3), "bash\n");
  EXPECT_EQ(Complete("rnicctl demo fa", 3), "fast-register\n");
  EXPECT_EQ(Complete("rnicctl grant re", 3), "revoke\n");
  EXPECT_EQ(Complete("rnicctl grant create --do", 4), "--door\n");
  EXPECT_EQ(Complete("rnicctl do", 2), "doors\n");
  EXPECT_EQ(Complete("rnicctl grant create --li", 4), "--lifetime --limits --listen\n");
  EXPECT_EQ(Complete("rnicctl log-level de", 3), "debug\n");
  EXPECT_EQ(Complete("rnicctl demo fast-register --p", 4), "--pages\n");
  EXPECT_EQ(Complete("rnicctl help de", 3), "demo\n");
}

TEST(Completion, EveryCommandIsOffered) {
  const std::string script = BashCompletion(Commands(), CommonOptions());
  for (const CommandSpec& command : Commands()) {
    EXPECT_THAT(script, HasSubstr(std::string(command.name)));
    // The command 'help' offers all others as well.
    EXPECT_TRUE(command.name == "help" ||
                Complete("rnicctl help " + std::string(command.name), 3) == std::string(command.name) + "\n");
  }
}

}  // namespace
}  // namespace rnicd::ctl
