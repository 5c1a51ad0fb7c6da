// What the daemon is started with: limits, standard streams, and folders by several names.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/calls/expect.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/wait.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;

std::unique_ptr<DaemonProcess> StartedWith(const DaemonOptions& options) {
  auto started = DaemonProcess::Start(options);
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

std::vector<std::string> WithFilesUpTo(uint64_t bytes) { return {"prlimit", "--fsize=" + std::to_string(bytes)}; }

// The daemon's log, and its exit code: a daemon that is expected to refuse to start.
std::pair<std::string, int> RefusedStart(const DaemonOptions& options) {
  auto launched = DaemonProcess::Launch(options);
  EXPECT_TRUE(launched.ok()) << launched.status();
  const ProcessEnd end = (*launched)->process().WaitForEnd().value_or(ProcessEnd());
  (*launched)->process().errors().WaitForEnd(kTimeout);
  return {(*launched)->log(), end.exit_code};
}

void ExpectStopsInOrder(DaemonProcess& daemon) {
  const absl::Status stopped = daemon.Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

TEST(HostileStart, MemoryAboveTheLimitOfFileSizesIsRefusedAndTheDaemonStays) {
  const auto daemon = StartedWith({.wrapper = WithFilesUpTo(kFileBytesMax)});
  ASSERT_NE(daemon, nullptr);
  EXPECT_TRUE(
      daemon->process().errors().WaitFor("the limit of file sizes also holds for each memory object", kTimeout));
  TestSession session(*daemon);
  v1::AllocateMemoryRequest request;
  request.set_size(2 * kFileBytesMax);
  ExpectRefused(session.Call(&MemoryStub::AllocateMemory, request), ErrorReason::MEMORY_PAGES_UNAVAILABLE);
  EXPECT_NE(session.SealedMemory(kFileBytesMax), 0u) << "what fits is granted";
  ExpectStopsInOrder(*daemon);
}

// Making the files of the pool writes to them, on a thread of its own.
TEST(HostileStart, APoolOfFilesAboveTheLimitStaysEmptyAndTheDaemonServes) {
  const auto daemon = StartedWith({.flags = {"--memory_pool=4KiB:4MiBx2"}, .wrapper = WithFilesUpTo(kFileBytesMax)});
  ASSERT_NE(daemon, nullptr);
  TestSession session(*daemon);
  EXPECT_NE(session.SealedMemory(kPage), 0u);
  ExpectStopsInOrder(*daemon);
}

TEST(HostileStart, AnAuditLogThatReachesTheLimitIsAsOneOnAFullDisk) {
  const auto directory = std::make_shared<TempDir>();
  const std::string log = directory->path() + "/audit";
  std::ofstream(log) << std::string(kFileBytesMax - 1, '\n');
  std::filesystem::permissions(log, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto daemon =
      StartedWith({.flags = {"--audit_log=" + log}, .wrapper = WithFilesUpTo(kFileBytesMax), .directory = directory});
  ASSERT_NE(daemon, nullptr);
  const TestSession session(*daemon);
  EXPECT_TRUE(daemon->process().errors().WaitFor("the audit log cannot be written", kTimeout));
  EXPECT_TRUE(daemon->process().errors().WaitFor("EFBIG", kTimeout)) << daemon->log();
  ExpectStopsInOrder(*daemon);
  EXPECT_LE(std::filesystem::file_size(log), kFileBytesMax);
}

TEST(HostileStart, WithoutStandardStreamsNothingElseGetsTheirNumbers) {
  const auto daemon = StartedWith({.wrapper = {"sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"}});
  ASSERT_NE(daemon, nullptr);
  for (const char* const stream : {"0", "1", "2"}) {
    const std::string link = "/proc/" + std::to_string(daemon->process().pid()) + "/fd/" + stream;
    EXPECT_EQ(std::filesystem::read_symlink(link), "/dev/null") << stream;
  }
  TestSession session(*daemon);
  EXPECT_NE(session.SealedMemory(kPage), 0u);
  ExpectStopsInOrder(*daemon);
}

// Threads would get no larger stacks, and some calls need more.
TEST(HostileStart, UnderASmallLimitOfStacksItServesAndStops) {
  const auto daemon = StartedWith({.flags = {kMetricsOnFreePort}, .wrapper = {"prlimit", "--stack=65536"}});
  ASSERT_NE(daemon, nullptr);
  TestSession session(*daemon);
  EXPECT_NE(session.SealedMemory(kPage), 0u);
  ExpectStopsInOrder(*daemon);
}

// The limit holds for users other than root; which thread is the first that is refused depends on the user's others.
TEST(HostileStart, WithTooFewThreadsItEndsInPlainWords) {
  const auto [log, exit_code] = RefusedStart({.uid = WorkloadUid(), .wrapper = {"prlimit", "--nproc=3"}});
  EXPECT_EQ(exit_code, 1) << log;
  EXPECT_NE(log.find("the system refuses a thread"), std::string::npos) << log;
}

TEST(HostileStart, WithTooFewDescriptorsItEndsInPlainWords) {
  const auto [log, exit_code] = RefusedStart({.descriptors_max = 12});
  EXPECT_EQ(exit_code, 1) << log;
  EXPECT_NE(log.find("could not start"), std::string::npos) << log;
}

TEST(HostileStart, AFolderOfSocketsWithASlashBehindItHasItsOperatorsBesideIt) {
  const auto directory = std::make_shared<TempDir>();
  const std::string folder = directory->path() + "/s";
  const auto daemon = StartedWith({.flags = {"--socket_dir=" + folder + "//"}, .directory = directory});
  ASSERT_NE(daemon, nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder + "-admin/admin.sock"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/-admin"));
  ExpectStopsInOrder(*daemon);
}

TEST(HostileStart, OperatorsInTheFolderOfContainersByALinkAreRefused) {
  const auto directory = std::make_shared<TempDir>();
  std::filesystem::create_directory(directory->path() + "/s");
  std::filesystem::create_directory_symlink("s", directory->path() + "/link");
  const auto [log, exit_code] =
      RefusedStart({.flags = {"--admin_socket_dir=" + directory->path() + "/link/admin"}, .directory = directory});
  EXPECT_EQ(exit_code, 1) << log;
  EXPECT_NE(log.find("--admin_socket_dir="), std::string::npos) << log;
  EXPECT_NE(log.find("because containers see that"), std::string::npos) << log;
}

}  // namespace
}  // namespace rnicd::test
