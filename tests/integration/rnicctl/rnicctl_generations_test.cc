// rnicctl where older generations of the daemon still have sessions: two daemons whose operators' sockets are in one
// directory, as after a hand-over.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

class RnicctlGenerations : public testing::Test {
 protected:
  RnicctlGenerations() {
    const std::filesystem::path operators = directory_.path();
    std::filesystem::create_symlink(newer_->admin_socket(), operators / "admin.sock");
    std::filesystem::create_symlink(older_->admin_socket(), operators / "admin-4.sock");
    // One that was killed leaves its name.
    std::ofstream(operators / "admin-2.sock");
  }

  static std::unique_ptr<DaemonProcess> StartDaemon() {
    auto daemon = DaemonProcess::Start();
    EXPECT_TRUE(daemon.ok()) << daemon.status();
    return daemon.ok() ? *std::move(daemon) : nullptr;
  }
  RnicctlRun Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {ExecutableForEveryone(RNICCTL_PATH), "--admin-socket-dir=" + directory_.path()});
    const auto process = ChildProcess::Start({.command = std::move(arguments)});
    return process.ok() ? Finish(**process) : RnicctlRun();
  }

  const TempDir directory_;
  const std::unique_ptr<DaemonProcess> newer_ = StartDaemon();
  const std::unique_ptr<DaemonProcess> older_ = StartDaemon();
};

TEST_F(RnicctlGenerations, ListsHaveTheItemsOfAllWithTheirGeneration) {
  const TestSession in_newer(*newer_);
  const TestSession in_older(*older_);
  const Json sessions = Run({"sessions", "--json"}).json()["sessions"];
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0]["session_id"], std::to_string(in_newer.session_id()));
  EXPECT_EQ(sessions[0]["generation"], 1) << "what the daemon says of itself";
  EXPECT_EQ(sessions[1]["session_id"], std::to_string(in_older.session_id()));
  EXPECT_EQ(sessions[1]["generation"], 4);
  const Json status = Run({"status", "--json"}).json();
  EXPECT_EQ(status["sessions"], 1);
  ASSERT_EQ(status["older_generations"].size(), 1u);
  EXPECT_EQ(status["older_generations"][0]["sessions"], 1);
}

TEST_F(RnicctlGenerations, EvictFindsTheGenerationThatHasTheSession) {
  const TestSession in_older(*older_);
  const std::string id = std::to_string(in_older.session_id());
  EXPECT_EQ(Run({"inspect", id, "--json"}).json()["session"]["session_id"], id);
  EXPECT_EQ(Run({"evict", id}).exit_code, 0);
  const RnicctlRun again = Run({"evict", id});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.errors.find("SESSION_NOT_FOUND"), std::string::npos) << again.errors;
}

TEST_F(RnicctlGenerations, HealthOfTheOwnContainersDaemonIsThatOfTheSameControlGroups) {
  const RnicctlRun ready = Run({"health", "--same-container"});
  EXPECT_EQ(ready.exit_code, 0) << ready.errors;
  // As seen from an older generation, which lives, but takes no connections.
  std::filesystem::remove(directory_.path() + "/admin.sock");
  EXPECT_EQ(Run({"health", "--same-container"}).exit_code, 1);
  const RnicctlRun live = Run({"health", "--live", "--same-container"});
  EXPECT_EQ(live.exit_code, 0) << live.errors;
}

TEST_F(RnicctlGenerations, ThatHaveAllEndedAreNotMentioned) {
  older_->KillHard();
  const TestSession session(*newer_);
  const RnicctlRun sessions = Run({"sessions"});
  EXPECT_EQ(sessions.exit_code, 0) << sessions.errors;
  EXPECT_EQ(sessions.output.find("GENERATION"), std::string::npos) << sessions.output;
}

}  // namespace
}  // namespace rnicd::test
