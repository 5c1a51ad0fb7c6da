#include "client/ctl/line/command_line.h"

#include <array>

#include "client/ctl/commands.h"
#include "client/ctl/line/common_options.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

absl::StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments) {
  return ParseCommandLine(arguments, Commands(), CommonOptions());
}

TEST(CommandLine, OptionsAreReadInBothSpellingsAndCommonOnesAnywhere) {
  const auto line = Parse({"--json", "register", "--size", "64MiB", "--regions=4", "--import", "--socket-dir", "/x"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command->name, "register");
  EXPECT_TRUE(line->Has("--json"));
  EXPECT_TRUE(line->Has("--import"));
  EXPECT_EQ(line->Value("--size"), "64MiB");
  EXPECT_EQ(line->Value("--regions"), "4");
  EXPECT_EQ(line->Value("--socket-dir"), "/x");
  EXPECT_EQ(line->Value("--hold"), std::nullopt);
}

TEST(CommandLine, AnUnderscoreInANameIsADash) {
  EXPECT_EQ(Parse({"status", "--socket_dir=/a_b"})->Value("--socket-dir"), "/a_b");
  EXPECT_EQ(Parse({"status", "--socket_dir", "/a_b"})->Value("--socket-dir"), "/a_b");
  EXPECT_EQ(Parse({"status", "--socket_dir=/x", "--socket-dir=/y"}).status().message(),
            "option --socket-dir is given twice");
}

TEST(CommandLine, ValueMayLookLikeACommandOrBeEmpty) {
  const auto line = Parse({"alloc", "--label", "status", "--size="});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command->name, "alloc");
  EXPECT_EQ(line->Value("--label"), "status");
  EXPECT_EQ(line->Value("--size"), "");
}

TEST(CommandLine, HelpAndVersionAreCommandsWhereverTheyStand) {
  const auto help = Parse({"alloc", "--size", "1", "--help", "nonsense"});
  ASSERT_TRUE(help.ok());
  EXPECT_EQ(help->command->name, "help");
  EXPECT_EQ(help->argument, "alloc");
  EXPECT_EQ(Parse({"-h"})->command->name, "help");
  EXPECT_EQ(Parse({"alloc", "-h"})->argument, "alloc");
  EXPECT_EQ(Parse({"--help"})->argument, std::nullopt);
  EXPECT_EQ(Parse({"--version"})->command->name, "version");
}

TEST(CommandLine, ArgumentIsTakenWhereTheCommandHasOne) {
  EXPECT_EQ(Parse({"completion", "bash"})->argument, "bash");
  EXPECT_FALSE(Parse({"status", "bash"}).ok());
  EXPECT_FALSE(Parse({"completion", "bash", "zsh"}).ok());
  const auto demo = Parse({"demo", "--pages", "16", "fast-register"});
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_EQ(demo->argument, "fast-register");
  EXPECT_EQ(demo->Value("--pages"), "16");
}

TEST(CommandLine, OperandStandsBehindTheArgument) {
  const auto revoke = Parse({"grant", "revoke", "--json", "17"});
  ASSERT_TRUE(revoke.ok()) << revoke.status();
  EXPECT_EQ(revoke->argument, "revoke");
  EXPECT_EQ(revoke->operand, "17");
  EXPECT_EQ(Parse({"grant", "list"})->operand, std::nullopt);
  EXPECT_FALSE(Parse({"grant", "revoke", "17", "18"}).ok());
  EXPECT_FALSE(Parse({"evict", "17", "18"}).ok());
}

TEST(CommandLine, MistakesAreNamed) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "no command given; 'rnicctl help' lists them"},
      {{"regster"}, "unknown command 'regster'"},
      {{"alloc", "--sise", "4"}, "unknown option '--sise'"},
      {{"--size", "4", "alloc"}, "unknown option '--size' (options of a command stand behind it)"},
      {{"status", "--size", "4"}, "unknown option '--size'"},
      {{"alloc", "--size"}, "option --size needs a value (SIZE)"},
      {{"register", "--import=yes"}, "option --import takes no value"},
      {{"alloc", "--size", "1", "--size", "2"}, "option --size is given twice"},
      {{"status", "-x"}, "unknown option '-x'"},
      {{"status", "more"}, "unexpected argument 'more'"},
  };
  for (const Case& wrong : cases) {
    const absl::Status status = Parse(wrong.arguments).status();
    EXPECT_TRUE(IsUsageError(status)) << wrong.message;
    EXPECT_EQ(status.message(), wrong.message);
  }
}

}  // namespace
}  // namespace rnicd::ctl
