// The privileges that the daemon dropped at start: read from the kernel, for every thread, while it serves.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/process/wait.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kIpcLock = uint64_t{1} << 14;
constexpr uint64_t kSetPcap = uint64_t{1} << 8;

// The lines of a /proc/<pid>/task/<tid>/status.
using ThreadStatus = std::map<std::string, std::string>;

ThreadStatus ReadStatus(const std::filesystem::path& file) {
  std::ifstream lines(file);
  ThreadStatus status;
  for (std::string name; lines >> name && !name.empty();) {
    std::getline(lines >> std::ws, status[name.substr(0, name.size() - 1)]);
  }
  return status;
}

uint64_t Set(const ThreadStatus& status, const std::string& name) {
  const auto found = status.find(name);
  return found == status.end() ? ~uint64_t{0} : std::stoull(found->second, nullptr, 16);
}

// All threads of the daemon, except one that ends while being read: it has no capabilities any more.
std::vector<ThreadStatus> ThreadsOf(DaemonProcess& daemon) {
  std::vector<ThreadStatus> threads;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(daemon.process().pid()) + "/task")) {
    if (ThreadStatus status = ReadStatus(thread.path() / "status"); status.contains("CapEff")) {
      threads.push_back(std::move(status));
    }
  }
  return threads;
}

// The status of this process, and so the initial one of the daemon that it starts.
ThreadStatus Own() { return ReadStatus("/proc/self/status"); }

class LeastPrivilege : public testing::Test {
 protected:
  void Start(const DaemonOptions& options) {
    auto started = DaemonProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    // Use the daemon once, so that its serving threads exist.
    ASSERT_NO_FATAL_FAILURE(AdminStatus(*daemon_));
    ASSERT_TRUE(daemon_->process().errors().WaitFor("ready", kTimeout)) << daemon_->log();
    threads_ = ThreadsOf(*daemon_);
    ASSERT_GT(threads_.size(), 2u);
  }
  void TearDown() override {
    if (daemon_ != nullptr) {
      const absl::Status stopped = daemon_->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    }
  }
  // `expected` are the permitted and effective capabilities; the inheritable ones are always empty.
  void ExpectCapabilities(uint64_t expected) const {
    const ThreadStatus own = Own();
    // Changing the bounding set requires CAP_SETPCAP; without it, no_new_privs makes the set irrelevant.
    const uint64_t bounding = (Set(own, "CapEff") & kSetPcap) != 0 ? 0 : Set(own, "CapBnd");
    for (const ThreadStatus& thread : threads_) {
      EXPECT_EQ(Set(thread, "CapEff"), expected) << thread.at("Name");
      EXPECT_EQ(Set(thread, "CapPrm"), expected) << thread.at("Name");
      EXPECT_EQ(Set(thread, "CapInh"), 0u) << thread.at("Name");
      EXPECT_EQ(Set(thread, "CapAmb"), 0u) << thread.at("Name");
      EXPECT_EQ(Set(thread, "CapBnd"), bounding) << thread.at("Name");
    }
  }
  void ExpectInAllThreads(const std::string& name, const std::string& value) const {
    for (const ThreadStatus& thread : threads_) {
      EXPECT_EQ(thread.at(name), value) << name << " of " << thread.at("Name");
    }
  }
  static uint64_t WhatTheProviderNeeds() {
    return ProviderUnderTest() == "verbs" ? Set(Own(), "CapPrm") & kIpcLock : 0;
  }

  std::unique_ptr<DaemonProcess> daemon_;

 private:
  std::vector<ThreadStatus> threads_;
};

TEST_F(LeastPrivilege, NoThreadHasACapabilityThatItsProviderDoesNotNeed) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {kMetricsOnFreePort}}));
  ExpectCapabilities(WhatTheProviderNeeds());
}

TEST_F(LeastPrivilege, EveryThreadIsFilteredAndGainsNothing) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {kMetricsOnFreePort}}));
  ExpectInAllThreads("NoNewPrivs", "1");
  // 2 is SECCOMP_MODE_FILTER.
  ExpectInAllThreads("Seccomp", "2");
}

// The second filter is loaded when everything is open, for threads that the start has made, too.
TEST_F(LeastPrivilege, EveryThreadOfADaemonThatServesHasBothFilters) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {kMetricsOnFreePort}}));
  const int own = Own().contains("Seccomp_filters") ? std::stoi(Own().at("Seccomp_filters")) : 0;
  ExpectInAllThreads("Seccomp_filters", std::to_string(own + 2));
}

TEST_F(LeastPrivilege, NoMemoryGetsIntoACoreDump) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--provider=soft"}, .uid = WorkloadUid()}));
  const std::string proc = "/proc/" + std::to_string(daemon_->process().pid());
  std::ifstream limits(proc + "/limits");
  std::string line;
  while (std::getline(limits, line) && !line.starts_with("Max core file size")) {
  }
  EXPECT_NE(line.find(" 0 "), std::string::npos) << line;
  // The kernel gives what belongs to a process that cannot be dumped to root.
  struct stat facts = {};
  ASSERT_EQ(stat((proc + "/environ").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 0u);
}

// How the daemon says that a folder is not the one that it started with.
constexpr char kWhyDenied[] = "the sandbox knows only the folders of the start";

// Whether a daemon with this policy file reads another one that replaces it by a link into another folder.
bool ReloadsFromAnotherFolder(const std::vector<std::string>& flags, bool& restricted) {
  const TempDir folders;
  const std::string policy = folders.path() + "/policy/file";
  const std::string other = folders.path() + "/other/file";
  for (const std::string& file : {policy, other}) {
    std::filesystem::create_directory(std::filesystem::path(file).parent_path());
    std::ofstream(file) << "tenant { name: \"all\" }\ndefault_tenant: \"all\"\n";
    std::filesystem::permissions(file, std::filesystem::perms(0644));
  }
  DaemonOptions options{.flags = flags};
  options.flags.push_back("--policy_file=" + policy);
  const auto daemon = DaemonProcess::Start(options);
  EXPECT_TRUE(daemon.ok()) << daemon.status();
  if (!daemon.ok()) {
    return false;
  }
  EXPECT_TRUE((*daemon)->process().errors().WaitFor("ready", kTimeout));
  restricted = (*daemon)->log().find("landlock=0") == std::string::npos;
  std::filesystem::remove(policy);
  std::filesystem::create_symlink(other, policy);
  (*daemon)->process().Signal(SIGHUP);
  Eventually([&] { return (*daemon)->log().find("policy ") != std::string::npos; });
  const bool reloaded = (*daemon)->log().find("policy in force") != std::string::npos;
  EXPECT_NE(reloaded, (*daemon)->log().find(kWhyDenied) != std::string::npos) << (*daemon)->log();
  EXPECT_TRUE((*daemon)->Stop().ok());
  return reloaded;
}

TEST_F(LeastPrivilege, ThePolicyIsReadInItsFolderOnly) {
  bool restricted = false;
  const bool reloaded = ReloadsFromAnotherFolder({}, restricted);
  EXPECT_NE(reloaded, restricted);
}

// As when a volume is mounted again. Lines go to the old file as long as it has a name.
TEST_F(LeastPrivilege, AnAuditFolderThatWasReplacedIsOutOfReachAndSaidToBe) {
  const TempDir folders;
  const std::string folder = folders.path() + "/log";
  const auto lines = [](const std::string& of) { return std::filesystem::file_size(of + "/a"); };
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--audit_log=" + folder + "/a"}}));
  const bool restricted = daemon_->log().find("landlock=0") == std::string::npos;
  std::filesystem::rename(folder, folder + "-old");
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const uintmax_t before = lines(folder + "-old");
  const TestSession session(*daemon_);
  EXPECT_TRUE(Eventually([&] {
    return restricted ? daemon_->log().find(kWhyDenied) != std::string::npos && lines(folder + "-old") > before
                      : std::filesystem::exists(folder + "/a") && lines(folder) > 0;
  })) << daemon_->log();
}

// What the daemon may write must not depend on which of its folders there were at the start.
TEST_F(LeastPrivilege, TheFolderAboveDirectoriesThatAreMadeAtTheStartIsOutOfReach) {
  const auto directory = std::make_shared<TempDir>();
  ASSERT_TRUE(std::filesystem::create_directory(directory->path() + "/log"));
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--audit_log=" + directory->path() + "/log/a"}, .directory = directory}));
  const bool restricted = daemon_->log().find("landlock=0") == std::string::npos;
  std::filesystem::rename(directory->path() + "/log", directory->path() + "/log-old");
  ASSERT_TRUE(std::filesystem::create_directory(directory->path() + "/log"));
  const TestSession session(*daemon_);
  EXPECT_TRUE(Eventually([&] {
    return restricted ? daemon_->log().find(kWhyDenied) != std::string::npos
                      : std::filesystem::exists(directory->path() + "/log/a");
  })) << daemon_->log();
}

TEST_F(LeastPrivilege, PathsAreNotRestrictedOnRequest) {
  bool restricted = true;
  EXPECT_TRUE(ReloadsFromAnotherFolder({"--restrict_paths=false"}, restricted));
  EXPECT_FALSE(restricted);
}

TEST_F(LeastPrivilege, TheFilterThatOnlyLogsIsAFilterToo) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--system_call_filter=log"}}));
  ExpectInAllThreads("NoNewPrivs", "1");
  ExpectInAllThreads("Seccomp", "2");
}

TEST_F(LeastPrivilege, WithoutAFilterThereIsStillNoCapability) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--system_call_filter=off"}}));
  ExpectInAllThreads("NoNewPrivs", "1");
  ExpectInAllThreads("Seccomp", Own().at("Seccomp"));
  ExpectCapabilities(WhatTheProviderNeeds());
}

TEST_F(LeastPrivilege, AnotherUserStartsWithNothingAndIsFiltered) {
  ASSERT_NO_FATAL_FAILURE(Start({.flags = {"--provider=soft"}, .uid = WorkloadUid()}));
  ExpectInAllThreads("NoNewPrivs", "1");
  ExpectInAllThreads("Seccomp", "2");
}

TEST_F(LeastPrivilege, AFilterWithoutAMeaningIsRefused) {
  const auto launched = DaemonProcess::Launch({.flags = {"--system_call_filter=sometimes"}});
  ASSERT_TRUE(launched.ok()) << launched.status();
  const auto end = (*launched)->process().WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_TRUE((*launched)->process().errors().WaitFor("system_call_filter", kTimeout)) << (*launched)->log();
}

}  // namespace
}  // namespace rnicd::test
