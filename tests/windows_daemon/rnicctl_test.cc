// rnicctl.exe, and with it librnicd, against rnicd.exe.
#include <string>

#include "tests/windows_daemon/daemon_program.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;

class RnicctlOnWindows : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.serves()) << daemon_.log(); }

  std::string Command(const std::string& arguments) const {
    return RNICCTL_PROGRAM " " + arguments + " --socket-dir " + daemon_.pipe();
  }
  // What it writes; it must succeed.
  std::string Run(const std::string& arguments) const {
    Program rnicctl(Command(arguments));
    EXPECT_EQ(rnicctl.Wait(), 0u) << arguments << "\n" << rnicctl.output() << daemon_.log();
    return rnicctl.output();
  }

  DaemonProgram daemon_;
};

TEST_F(RnicctlOnWindows, ListsTheAdapters) { EXPECT_THAT(Run("adapters"), HasSubstr("soft0")); }

TEST_F(RnicctlOnWindows, RegistersMemory) { EXPECT_THAT(Run("register --size 1048576"), HasSubstr("REMOTE TOKEN")); }

TEST_F(RnicctlOnWindows, TransfersBytesByFastRegistrations) { Run("demo fast-register"); }

TEST_F(RnicctlOnWindows, EveryRuleOfTheSelftestHolds) {
  EXPECT_THAT(Run("selftest --no-bench"), ::testing::Not(HasSubstr("FAIL")));
}

TEST_F(RnicctlOnWindows, ShowsOperatorsTheNode) {
  EXPECT_THAT(Run("status"), HasSubstr("soft"));
  EXPECT_THAT(Run("health"), HasSubstr("ready"));
  Run("sessions");
  Run("top --count 1");
}

TEST_F(RnicctlOnWindows, SaysWhereNoDaemonIs) {
  Program rnicctl(std::string(RNICCTL_PROGRAM) + R"( adapters --socket-dir \\.\pipe\nobody-is-here)");
  EXPECT_NE(rnicctl.Wait(), 0u);
  EXPECT_THAT(rnicctl.output(), HasSubstr("pipe"));
}

// The daemon is killed while a session is held; the holder must notice and end.
TEST_F(RnicctlOnWindows, EndsWithTheDaemon) {
  Program holder(Command("register --size 4096 --hold forever"));
  EXPECT_TRUE(Eventually([&] { return holder.output().find("REMOTE TOKEN") != std::string::npos; }));
  daemon_.Kill();
  EXPECT_NE(holder.Wait(), 0u);
}

TEST_F(RnicctlOnWindows, AKilledClientLeavesNothing) {
  {
    Program holder(Command("register --size 4096 --hold forever"));
    EXPECT_TRUE(Eventually([&] { return holder.output().find("REMOTE TOKEN") != std::string::npos; }));
    EXPECT_THAT(Run("status"), HasSubstr("sessions"));
  }
  EXPECT_TRUE(Eventually([&] { return Run("sessions --json").find("session_id") == std::string::npos; }));
}

}  // namespace
}  // namespace rnicd::test
