#include "daemon/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/sandbox/sandboxed_child_test.h"
#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {
namespace {

// The version of Landlock that EnterSandbox should report here.
int Expected() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 1 || BuiltWithSanitizer() ? 0 : static_cast<int>(version);
}

// Read before a filter is in force, which would refuse this call.
const int kExpected = Expected();

// Whether an access that no rule allows ended as it should: refused, or where the kernel has no Landlock, carried out.
bool IsRefused(bool carried_out) {
  const bool refused = !carried_out && (errno == EACCES || errno == EXDEV);
  return kExpected == 0 ? carried_out : refused;
}

bool Opens(const std::string& path, int flags, mode_t mode = 0600) {
  return UniqueFd(open(path.c_str(), flags | O_CLOEXEC, mode)).valid();
}

class PathsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "rnicd-paths-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* const part : {"/policy", "/sockets", "/other"}) {
      ASSERT_TRUE(std::filesystem::create_directory(folder_ + part));
      std::ofstream(folder_ + part + "/file") << "text";
    }
    options_.paths = PathRules{.read = {folder_ + "/policy"},
                               .write = {folder_ + "/sockets"},
                               .devices = {"/dev/zero", "/dev/no-such-device"}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Expects that the steps hold for a daemon that serves.
  void ExpectInside(const std::function<bool()>& steps) const {
    const ChildEnd end = WhenServing(options_, [&](int) { return steps() ? 0 : 1; });
    EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
  }

  std::string folder_;
  SandboxOptions options_;
};

TEST_F(PathsTest, TheVersionInForceIsReported) {
  const ChildEnd end = Child([&](int) {
                         const auto entered = EnterSandbox(options_);
                         return entered.ok() && entered->landlock_version == kExpected ? 0 : 1;
                       }).End();
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(PathsTest, WhatIsToBeReadIsReadOnly) {
  ExpectInside([&] {
    const std::string file = folder_ + "/policy/file";
    return Opens(file, O_RDONLY) && Opens(folder_ + "/policy", O_RDONLY | O_DIRECTORY) &&
           IsRefused(Opens(file, O_WRONLY)) && IsRefused(Opens(folder_ + "/policy/new", O_WRONLY | O_CREAT)) &&
           IsRefused(unlink(file.c_str()) == 0);
  });
}

TEST_F(PathsTest, AFileThatReplacesOneIsReadToo) {
  Child child([&](int pipe) {
    ServeOrExit(options_, pipe);
    WriteText(pipe, "inside");
    while (access((folder_ + "/policy/replaced").c_str(), F_OK) != 0) {
    }
    return Opens(folder_ + "/policy/file", O_RDONLY) ? 0 : 1;
  });
  ASSERT_TRUE(child.WaitForOutput());
  std::ofstream(folder_ + "/policy/new") << "other text";
  std::filesystem::rename(folder_ + "/policy/new", folder_ + "/policy/file");
  std::ofstream(folder_ + "/policy/replaced") << "yes";
  EXPECT_EQ(child.End().exit_code, 0);
}

TEST_F(PathsTest, FilesAndSocketsAreMadeWhereTheyBelong) {
  ExpectInside([&] {
    const std::string sockets = folder_ + "/sockets";
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    (sockets + "/x.new").copy(address.sun_path, sizeof(address.sun_path) - 1);
    const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const UniqueFd log(open((sockets + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const bool works = bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                       listen(listener.get(), 1) == 0 && rename(address.sun_path, (sockets + "/x").c_str()) == 0 &&
                       unlink((sockets + "/x").c_str()) == 0 && write(log.get(), "line", 4) == 4 &&
                       ftruncate(log.get(), 1) == 0 && mkdir((sockets + "/folder").c_str(), 0700) == 0;
    return works && IsRefused(rename((sockets + "/log").c_str(), (folder_ + "/other/log").c_str()) == 0);
  });
}

// What may be written must not depend on what there was at the start.
TEST_F(PathsTest, AFolderThatDoesNotExistOpensNoOther) {
  options_.paths->write = {folder_ + "/other/new"};
  ExpectInside([&] {
    return IsRefused(Opens(folder_ + "/other/file", O_WRONLY)) &&
           IsRefused(mkdir((folder_ + "/other/new").c_str(), 0700) == 0);
  });
}

TEST_F(PathsTest, NothingElseIsRead) {
  ExpectInside([&] {
    return IsRefused(Opens(folder_ + "/other/file", O_RDONLY)) &&
           IsRefused(Opens(folder_ + "/other", O_RDONLY | O_DIRECTORY)) && IsRefused(Opens("/etc/passwd", O_RDONLY));
  });
}

TEST_F(PathsTest, DevicesAreReadAndWritten) {
  ExpectInside(
      [] { return Opens("/dev/zero", O_RDWR) && Opens("/dev/null", O_RDWR) && IsRefused(Opens("/dev/full", O_RDWR)); });
}

// Written there, even code that is mapped for reading only would change.
TEST_F(PathsTest, TheProcessDoesNotWriteItsOwnMemoryThroughAFile) {
  ExpectInside([] { return Opens("/proc/self/mem", O_RDONLY) && IsRefused(Opens("/proc/self/mem", O_RDWR)); });
}

TEST_F(PathsTest, MemoryFilesAreNotPaths) {
  ExpectInside([] {
    const UniqueFd file(memfd_create("memory", MFD_CLOEXEC));
    return file.valid() && ftruncate(file.get(), 4096) == 0;
  });
}

}  // namespace
}  // namespace rnicd::sandbox
