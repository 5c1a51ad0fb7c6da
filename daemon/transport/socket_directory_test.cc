#include "daemon/transport/socket_directory.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rnicd::transport {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(lstat(path.c_str(), &file), 0) << path;
  return file.st_mode & 07777;
}

// True when a server accepts connections at the path.
bool CanConnect(const std::string& path, int type) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

class SocketDirectoryTest : public ::testing::Test {
 protected:
  SocketDirectoryTest() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    root_ = mkdtemp(name);
    path_ = root_ + "/d";
  }
  ~SocketDirectoryTest() override { std::filesystem::remove_all(root_); }

  SocketDirectory Claimed() {
    auto claimed = SocketDirectory::Claim(path_, 0755);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    return *std::move(claimed);
  }

  std::string root_;
  std::string path_;
};

TEST_F(SocketDirectoryTest, MakesTheDirectoryWithItsModeWhateverTheUmask) {
  const mode_t before = umask(0077);
  const SocketDirectory directory = Claimed();
  umask(before);
  EXPECT_EQ(ModeOf(path_), 0755u);
  EXPECT_EQ(directory.path(), path_);
}

TEST_F(SocketDirectoryTest, AnExistingDirectoryKeepsItsMode) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  const SocketDirectory directory = Claimed();
  EXPECT_EQ(ModeOf(path_), 0700u);
}

TEST_F(SocketDirectoryTest, ASecondClaimIsRefusedWhileTheFirstLives) {
  {
    const SocketDirectory first = Claimed();
    const auto second = SocketDirectory::Claim(path_, 0755);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(second.status().message().find(path_), absl::string_view::npos);
  }
  EXPECT_TRUE(SocketDirectory::Claim(path_, 0755).ok()) << "the lock goes with its owner";
}

TEST_F(SocketDirectoryTest, ADirectoryThatCannotBeMadeIsNamed) {
  const std::string missing = path_ + "/in/no/parent";
  const auto refused = SocketDirectory::Claim(missing, 0755);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(refused.status().message().find(missing), absl::string_view::npos);
}

// A user that can write there could put its own socket in place of the daemon's.
TEST_F(SocketDirectoryTest, APlaceThatOthersCanWriteToIsNotTrusted) {
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  for (const mode_t mode : {0777u, 0775u, 0757u, 01777u}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const auto refused = SocketDirectory::Claim(path_, 0755);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_NE(refused.status().message().find(path_), absl::string_view::npos);
    EXPECT_FALSE(std::filesystem::exists(path_ + "/lock"));
  }
}

TEST_F(SocketDirectoryTest, AFileOrALinkInItsPlaceIsNotTrusted) {
  std::ofstream(path_) << "a file";
  EXPECT_EQ(SocketDirectory::Claim(path_, 0755).status().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(path_);
  std::filesystem::create_directory_symlink(root_, path_);
  EXPECT_EQ(SocketDirectory::Claim(path_, 0755).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SocketDirectoryTest, ALockThatIsALinkIsNotFollowed) {
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  const std::string target = root_ + "/target";
  ASSERT_EQ(symlink(target.c_str(), (path_ + "/lock").c_str()), 0);
  EXPECT_EQ(SocketDirectory::Claim(path_, 0755).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(SocketDirectoryTest, ASocketListensWithItsModeUnderItsNameOnly) {
  const SocketDirectory directory = Claimed();
  const auto listener = directory.Listen("x.sock", SOCK_SEQPACKET, 0640);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(ModeOf(path_ + "/x.sock"), 0640u);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/x.sock.new"));
  EXPECT_TRUE(CanConnect(path_ + "/x.sock", SOCK_SEQPACKET));
  EXPECT_LT(accept(-1, nullptr, nullptr), 0);
}

TEST_F(SocketDirectoryTest, TheListenerDoesNotBlock) {
  const SocketDirectory directory = Claimed();
  const auto listener = directory.Listen("x.sock", SOCK_STREAM, 0600);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(accept(listener->get(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(SocketDirectoryTest, WhatAKilledDaemonLeftIsReplaced) {
  {
    const SocketDirectory killed = Claimed();
    ASSERT_TRUE(killed.Listen("x.sock", SOCK_STREAM, 0600).ok());
    std::ofstream(path_ + "/x.sock.new") << "half made";
  }
  ASSERT_TRUE(std::filesystem::exists(path_ + "/x.sock"));
  EXPECT_FALSE(CanConnect(path_ + "/x.sock", SOCK_STREAM));
  const SocketDirectory directory = Claimed();
  const auto listener = directory.Listen("x.sock", SOCK_STREAM, 0666);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(CanConnect(path_ + "/x.sock", SOCK_STREAM));
  EXPECT_EQ(ModeOf(path_ + "/x.sock"), 0666u);
}

TEST_F(SocketDirectoryTest, APathTooLongForASocketIsRefused) {
  const SocketDirectory directory = Claimed();
  const auto refused = directory.Listen(std::string(120, 'x'), SOCK_STREAM, 0600);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("xxx"), absl::string_view::npos);
}

TEST_F(SocketDirectoryTest, ANameThatIsADirectoryIsAFailureThatNamesIt) {
  const SocketDirectory directory = Claimed();
  ASSERT_EQ(mkdir((path_ + "/x.sock").c_str(), 0755), 0);
  const auto refused = directory.Listen("x.sock", SOCK_STREAM, 0600);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(refused.status().message().find("x.sock"), absl::string_view::npos);
}

TEST_F(SocketDirectoryTest, RemovingTakesTheNameAway) {
  const SocketDirectory directory = Claimed();
  const auto listener = directory.Listen("x.sock", SOCK_STREAM, 0600);
  directory.Remove("x.sock");
  EXPECT_FALSE(std::filesystem::exists(path_ + "/x.sock"));
  directory.Remove("x.sock");
}

}  // namespace
}  // namespace rnicd::transport
