// Sockets and their directories that are removed or replaced while the daemon runs: by a cleaner, by a second daemon,
// by an administrator.
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/wait.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

namespace fs = std::filesystem;

class RemovedSockets : public testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags = {}) {
    DaemonOptions options{.flags = flags};
    options.flags.emplace_back(kMetricsOnFreePort);
    auto started = DaemonProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    ASSERT_TRUE(daemon_->process().errors().WaitFor("ready", kTimeout)) << daemon_->log();
    metrics_address_ = AdminStatus(*daemon_).metrics_address();
    idle_ = MeasureIdle(*daemon_);
    session_ = std::make_unique<TestSession>(*daemon_);
  }
  void TearDown() override {
    session_.reset();
    if (daemon_ != nullptr) {
      ExpectNothingHeld(*daemon_, idle_);
      const absl::Status stopped = daemon_->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    }
  }

  std::vector<std::pair<std::string, int>> Sockets() const {
    return {{daemon_->rpc_socket(), SOCK_STREAM},
            {daemon_->fd_socket(), SOCK_SEQPACKET},
            {daemon_->admin_socket(), SOCK_STREAM}};
  }
  std::vector<mode_t> Modes() const {
    std::vector<mode_t> modes;
    for (const auto& [path, type] : Sockets()) {
      struct stat facts = {};
      modes.push_back(lstat(path.c_str(), &facts) == 0 ? facts.st_mode : 0);
    }
    return modes;
  }
  bool AllAccept() const {
    for (const auto& [path, type] : Sockets()) {
      if (!ConnectUnix(path, type).valid()) {
        return false;
      }
    }
    return true;
  }
  HttpAnswer Readyz() const { return HttpGet(metrics_address_, "/readyz"); }
  bool IsNotReadyBecauseOf(const std::string& text) const {
    const HttpAnswer answer = Readyz();
    return answer.status == 503 && answer.body.find(text) != std::string::npos;
  }
  // Old and new clients are served, as if nothing had happened.
  void ExpectServes() {
    EXPECT_TRUE(Eventually([&] { return AllAccept() && Readyz().status == 200; })) << Readyz().body << daemon_->log();
    EXPECT_NE(session_->SealedMemory(kPage), 0u) << "the session before";
    TestSession newcomer(*daemon_);
    EXPECT_NE(newcomer.SealedMemory(kPage), 0u);
    EXPECT_TRUE(Eventually([&] { return AdminSessions(*daemon_).size() == 2; }))
        << "these two, and none of earlier ones";
  }
  bool IsRestricted() const { return daemon_->log().find("landlock=0") == std::string::npos; }

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<TestSession> session_;
  std::string metrics_address_;
  IdleState idle_;
};

TEST_F(RemovedSockets, EachOfThemComesBackAsItWas) {
  ASSERT_NO_FATAL_FAILURE(Start({"--socket_mode=0660"}));
  const std::vector<mode_t> modes = Modes();
  for (const auto& [path, type] : Sockets()) {
    ASSERT_TRUE(fs::remove(path));
    ASSERT_NO_FATAL_FAILURE(ExpectServes()) << path;
    EXPECT_EQ(Modes(), modes) << path;
  }
}

// A cleaner knows nothing of the lock either.
TEST_F(RemovedSockets, AllComeBackAtOnceWithTheLock) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const std::string& folder : {daemon_->socket_dir(), daemon_->admin_dir()}) {
    for (const auto& file : fs::directory_iterator(folder)) {
      fs::remove(file.path());
    }
  }
  ExpectServes();
  const auto second = DaemonProcess::Launch(
      {.flags = {"--handover_dir=" + daemon_->socket_dir() + "-none"}, .directory = daemon_->directory()});
  ASSERT_TRUE(second.ok()) << second.status();
  const auto end = (*second)->process().WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 1) << "the lock is held";
}

TEST_F(RemovedSockets, AFileOrASocketOfAnotherIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const auto& [path, type] : Sockets()) {
    std::ofstream(path + ".other") << "a file";
    fs::rename(path + ".other", path);
    ASSERT_NO_FATAL_FAILURE(ExpectServes()) << path;
  }
  // The first of two sockets under the name of the second: it listens, but is not what clients look for.
  fs::rename(daemon_->rpc_socket(), daemon_->fd_socket());
  ExpectServes();
}

TEST_F(RemovedSockets, ANameThatCannotBeHadMakesTheNodeUnreadyAndIsSaidOnce) {
  ASSERT_NO_FATAL_FAILURE(Start());
  fs::remove(daemon_->fd_socket());
  fs::create_directory(daemon_->fd_socket());
  EXPECT_TRUE(Eventually([&] { return IsNotReadyBecauseOf(daemon_->fd_socket()); })) << Readyz().body;
  EXPECT_NE(session_->Allocate(kPage).memory_id(), 0u) << "the session goes on";
  fs::remove(daemon_->fd_socket());
  ExpectServes();
  const std::string log = daemon_->log();
  const size_t said = log.find("clients do not find the daemon");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("clients do not find the daemon", said + 1), std::string::npos) << log;
  EXPECT_NE(log.find("clients find the daemon again"), std::string::npos) << log;
}

TEST_F(RemovedSockets, ADirectoryThatWasRemovedIsMadeAgainWherePathsAreNotRestricted) {
  ASSERT_NO_FATAL_FAILURE(Start({"--restrict_paths=false"}));
  for (const std::string& folder : {daemon_->socket_dir(), daemon_->admin_dir()}) {
    struct stat before = {};
    struct stat after = {};
    ASSERT_EQ(stat(folder.c_str(), &before), 0);
    fs::remove_all(folder);
    ASSERT_NO_FATAL_FAILURE(ExpectServes()) << folder;
    ASSERT_EQ(stat(folder.c_str(), &after), 0);
    EXPECT_EQ(after.st_mode, before.st_mode) << folder;
  }
}

TEST_F(RemovedSockets, ADirectoryThatTheSandboxForbidsIsSaidToBe) {
  ASSERT_NO_FATAL_FAILURE(Start());
  if (!IsRestricted()) {
    SUCCEED() << "this kernel has no Landlock, and the test above holds";
    return;
  }
  const std::string moved = daemon_->socket_dir() + "-moved";
  for (const bool replaced : {false, true}) {
    fs::rename(daemon_->socket_dir(), moved);
    if (replaced) {
      fs::create_directory(daemon_->socket_dir());
    }
    EXPECT_TRUE(Eventually([&] { return IsNotReadyBecauseOf("restart after one was replaced"); })) << Readyz().body;
    fs::remove(daemon_->socket_dir());
    fs::rename(moved, daemon_->socket_dir());
    ASSERT_NO_FATAL_FAILURE(ExpectServes());
  }
}

// The first is stopped meanwhile, as a process may be; otherwise it takes its lock again and the second cannot start.
TEST_F(RemovedSockets, WhatASecondDaemonHasByThenIsLeftToIt) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(daemon_->process().StopAndWait());
  for (const std::string& folder : {daemon_->socket_dir(), daemon_->admin_dir(), daemon_->socket_dir() + "-doors",
                                    daemon_->socket_dir() + "-handover"}) {
    for (const auto& file : fs::directory_iterator(folder)) {
      fs::remove(file.path());
    }
  }
  auto second = DaemonProcess::Start({.directory = daemon_->directory()});
  ASSERT_TRUE(second.ok()) << second.status();
  daemon_->process().Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return IsNotReadyBecauseOf("another rnicd serves on"); })) << Readyz().body;
  session_.reset();
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_TRUE(AllAccept()) << "a daemon that stops has removed the sockets of another";
  daemon_ = *std::move(second);
  idle_ = MeasureIdle(*daemon_);
  TestSession session(*daemon_);
  EXPECT_NE(session.SealedMemory(kPage), 0u);
}

}  // namespace
}  // namespace rnicd::test
