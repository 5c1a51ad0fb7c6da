#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/c/rnicd.h"
#include "rnicd/v1/session_service.pb.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/shared_daemon.h"

// librnicd.so in programs that were not made for it, with a real daemon.
namespace rnicd::test {
namespace {

class SharedLibrary : public DaemonTest {
 protected:
  // The programs open more sessions in a second than a uid may.
  SharedLibrary() : DaemonTest({"--connections_per_second=0"}) {}

  // What the program prints; a test failure unless it exits with 0.
  static std::string Run(const std::vector<std::string>& command) {
    absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start({.command = command});
    if (!process.ok()) {
      ADD_FAILURE() << process.status();
      return "";
    }
    // A thousand loads are longer than one answer.
    const std::optional<ProcessEnd> end = (*process)->WaitForEnd(10 * kTimeout);
    EXPECT_TRUE(end.has_value() && end->exit_code == 0) << (*process)->errors().Text();
    EXPECT_TRUE((*process)->output().WaitForEnd(kTimeout));
    return (*process)->output().Text();
  }

  const std::string nothing_left_ = "descriptors 0, mappings 0, threads 0, heap 0\n";
};

TEST_F(SharedLibrary, LoadedAndUnloadedAThousandTimesLeavesNothing) {
  EXPECT_EQ(Run({LOADS_PATH, daemon().socket_dir(), "1000", LIBRARY_PATH}), nothing_left_);
}

TEST_F(SharedLibrary, TwoOfThemInOneProcessDoNotMeet) {
  const TempDir folder;
  const std::string other = folder.path() + "/librnicd-other.so";
  std::filesystem::copy_file(LIBRARY_PATH, other);
  EXPECT_EQ(Run({LOADS_PATH, daemon().socket_dir(), "100", LIBRARY_PATH, other}), nothing_left_);
}

// What tests/support/c_client expects, which is linked with the library here.
TEST_F(SharedLibrary, ForkedChildHasASessionOfItsOwnAndLeavesTheParents) {
  EXPECT_EQ(Run({CLIENT_PATH, "fork", daemon().socket_dir()}), "");
  EXPECT_EQ(Run({CLIENT_PATH, "fork-beside-thread", daemon().socket_dir()}), "");
}

TEST_F(SharedLibrary, HasNoThreadThatIsNotAskedFor) {
  EXPECT_EQ(Run({CLIENT_PATH, "threads", daemon().socket_dir()}), "");
}

// This program has the system's protobuf, abseil, gRPC and C++ runtime, and the same messages as the library.
TEST_F(SharedLibrary, WorksBesideOtherCopiesOfWhatItHasInside) {
  void* const library = dlopen(LIBRARY_PATH, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto open = reinterpret_cast<decltype(&rnicd_open_session)>(dlsym(library, "rnicd_open_session"));
  const auto close = reinterpret_cast<decltype(&rnicd_close_session)>(dlsym(library, "rnicd_close_session"));
  ASSERT_TRUE(open != nullptr && close != nullptr);
  const std::string socket_dir = daemon().socket_dir();
  rnicd_session_options options = RNICD_INIT(rnicd_session_options);
  options.socket_dir = socket_dir.c_str();
  rnicd_session* session = nullptr;
  ASSERT_EQ(open(&options, &session), 0);
  EXPECT_EQ(close(session, nullptr), 0);
  EXPECT_EQ(dlclose(library), 0);
  // Its own messages are still described.
  EXPECT_EQ(v1::OpenSessionRequest::descriptor()->full_name(), "rnicd.v1.OpenSessionRequest");
}

}  // namespace
}  // namespace rnicd::test
