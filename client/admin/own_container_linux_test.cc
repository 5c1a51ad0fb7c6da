#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/files/unique_fd.h"
#include "client/admin/own_container.h"

namespace rnicd {
namespace {

// A socket whose other end is this process, seen in a folder that stands for /proc.
TEST(OwnContainer, IsThatOfTheDaemonsControlGroups) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd one(ends[0]);
  const UniqueFd other(ends[1]);
  EXPECT_TRUE(IsDaemonInThisContainer(one.get()));
  const std::filesystem::path proc = testing::TempDir() + "/own_container." + std::to_string(getpid());
  std::filesystem::create_directories(proc / "self");
  std::filesystem::create_directories(proc / std::to_string(getpid()));
  EXPECT_FALSE(IsDaemonInThisContainer(one.get(), proc)) << "unknown";
  std::ofstream(proc / "self/cgroup") << "0::/\n";
  std::ofstream(proc / std::to_string(getpid()) / "cgroup") << "0::/../cri-1.scope\n";
  EXPECT_FALSE(IsDaemonInThisContainer(one.get(), proc)) << "another container";
  std::filesystem::remove_all(proc);
}

}  // namespace
}  // namespace rnicd
