// rnicctl upgrade, with a stand-in of systemctl: starting the other slot makes another daemon that of admin.sock.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/rnicctl/rnicctl_run.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::test {
namespace {

class RnicctlUpgrade : public testing::Test {
 protected:
  RnicctlUpgrade() {
    std::filesystem::create_symlink(older_->admin_socket(), File("admin.sock"));
    SetState("rnicd@a", "active");
    SetState("rnicd@b", "inactive");
    std::ofstream(File("systemctl")) << "#!/bin/sh\ncd " << directory_.path() << "; echo \"$*\" >>said\n"
                                     << "case $1 in\n  show) cat \"$4\" ;;\n"
                                     << "  start) ln -sfn " << newer_->admin_socket() << " admin.sock ;;\nesac\n";
    EXPECT_EQ(chmod(File("systemctl").c_str(), 0755), 0);
  }

  std::string File(const std::string& name) const { return directory_.path() + "/" + name; }
  void SetState(const std::string& unit, const std::string& state) { std::ofstream(File(unit)) << state << "\n"; }
  // What systemctl was told to do, but not the questions.
  std::string Done() const {
    std::ifstream said(File("said"));
    std::string done;
    for (std::string line; std::getline(said, line);) {
      done += line.starts_with("show ") ? "" : line + "\n";
    }
    return done;
  }
  RnicctlRun Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"env", "PATH=" + directory_.path() + ":/usr/bin:/bin", ExecutableForEveryone(RNICCTL_PATH),
                      "upgrade", "--admin-socket-dir=" + directory_.path()});
    const auto process = ChildProcess::Start({.command = std::move(arguments)});
    return process.ok() ? Finish(**process) : RnicctlRun();
  }

  const TempDir directory_;
  const std::unique_ptr<DaemonProcess> older_ = *DaemonProcess::Start();
  const std::unique_ptr<DaemonProcess> newer_ = *DaemonProcess::Start();
};

TEST_F(RnicctlUpgrade, StartsTheOtherSlotAndThenStopsTheFirst) {
  const RnicctlRun run = Run({});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(Done(), "start rnicd@b\nstop --no-block rnicd@a\n");
  EXPECT_NE(run.output.find("\nrnicd@b serves: "), std::string::npos) << run.output;
}

TEST_F(RnicctlUpgrade, DryRunOnlySaysIt) {
  SetState("rnicd@a", "inactive");
  SetState("rnicd@b", "active");
  const RnicctlRun run = Run({"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(Done(), "");
  EXPECT_NE(run.output.find("1. systemctl start rnicd@a\n"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("2. systemctl stop --no-block rnicd@b\n"), std::string::npos) << run.output;
}

TEST_F(RnicctlUpgrade, WithoutATakeOverNothingIsStopped) {
  std::ofstream(File("systemctl"), std::ios::app)
      << "[ \"$1\" != start ] || ln -sfn " << older_->admin_socket() << " admin.sock\n";
  EXPECT_EQ(Run({}).exit_code, 1);
  std::ofstream(File("systemctl"), std::ios::app) << "[ \"$1\" != start ]\n";
  const RnicctlRun run = Run({});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.errors.find("rnicd@a serves as before"), std::string::npos) << run.errors;
  EXPECT_EQ(Done(), "start rnicd@b\nstart rnicd@b\n");
}

TEST_F(RnicctlUpgrade, WaitsForASlotThatStillHasSessions) {
  SetState("rnicd@b", "deactivating");
  const RnicctlRun run = Run({});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.errors.find("rnicd@b is deactivating"), std::string::npos) << run.errors;
  EXPECT_EQ(Done(), "");
}

}  // namespace
}  // namespace rnicd::test
