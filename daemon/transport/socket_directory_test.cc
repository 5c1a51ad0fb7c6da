#include "daemon/transport/socket_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
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

TEST_F(SocketDirectoryTest, WithACopyOfItsLockTheDirectoryIsAdopted) {
  auto first = std::make_optional(Claimed());
  auto heir = SocketDirectory::Adopt(path_, 0755, *first->CopyLock());
  ASSERT_TRUE(heir.ok()) << heir.status();
  first.reset();
  EXPECT_EQ(SocketDirectory::Claim(path_, 0755).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(heir->KeepClaim().ok());
}

TEST_F(SocketDirectoryTest, WithAnotherFileItIsNotAdopted) {
  const SocketDirectory first = Claimed();
  UniqueFd another(open((path_ + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(SocketDirectory::Adopt(path_, 0755, std::move(another)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(SocketDirectory::Adopt(path_, 0755, UniqueFd()).status().code(), absl::StatusCode::kUnavailable);
}

// The name is that of a lock which nobody has.
TEST_F(SocketDirectoryTest, AnHeirWhoseLockWasRemovedTakesTheNewOne) {
  const SocketDirectory first = Claimed();
  std::filesystem::remove(path_ + "/lock");
  const auto heir = SocketDirectory::Adopt(path_, 0755, *first.CopyLock());
  ASSERT_TRUE(heir.ok()) << heir.status();
  EXPECT_FALSE(SocketDirectory::Claim(path_, 0755).ok());
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
  EXPECT_EQ(accept(listener->listener.get(), nullptr, nullptr), -1);
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

TEST_F(SocketDirectoryTest, AFailureLeavesNothingBehind) {
  const SocketDirectory directory = Claimed();
  ASSERT_EQ(mkdir((path_ + "/x.sock").c_str(), 0755), 0);
  ASSERT_FALSE(directory.Listen("x.sock", SOCK_STREAM, 0600).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/x.sock.new"));
}

TEST_F(SocketDirectoryTest, RemovingTakesTheNameAway) {
  const SocketDirectory directory = Claimed();
  const auto named = directory.Listen("x.sock", SOCK_STREAM, 0600);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_TRUE(directory.Has("x.sock", named->file));
  directory.Remove("x.sock", named->file);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/x.sock"));
  EXPECT_FALSE(directory.Has("x.sock", named->file));
  directory.Remove("x.sock", named->file);
}

// Another daemon may have the directory by then, or a file system another file.
TEST_F(SocketDirectoryTest, WhatIsNotItsOwnIsNotRemoved) {
  const SocketDirectory directory = Claimed();
  const auto own = directory.Listen("x.sock", SOCK_STREAM, 0600);
  const auto other = directory.Listen("x.sock", SOCK_STREAM, 0600);
  ASSERT_TRUE(own.ok() && other.ok());
  directory.Remove("x.sock", own->file);
  EXPECT_TRUE(CanConnect(path_ + "/x.sock", SOCK_STREAM));
  std::filesystem::remove(path_ + "/x.sock");
  std::ofstream(path_ + "/x.sock") << "a file";
  directory.Remove("x.sock", other->file);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/x.sock"));
}

TEST_F(SocketDirectoryTest, ADirectoryThatWasRemovedIsClaimedAgain) {
  SocketDirectory directory = Claimed();
  std::filesystem::remove_all(path_);
  EXPECT_FALSE(directory.Listen("x.sock", SOCK_STREAM, 0600).ok());
  EXPECT_TRUE(directory.KeepClaim().ok());
  EXPECT_EQ(ModeOf(path_), 0755u);
  EXPECT_TRUE(directory.Listen("x.sock", SOCK_STREAM, 0600).ok());
  EXPECT_FALSE(SocketDirectory::Claim(path_, 0755).ok()) << "the lock is held again";
}

TEST_F(SocketDirectoryTest, ALockThatWasRemovedIsTakenAgain) {
  SocketDirectory directory = Claimed();
  std::filesystem::remove(path_ + "/lock");
  EXPECT_TRUE(directory.KeepClaim().ok());
  EXPECT_FALSE(SocketDirectory::Claim(path_, 0755).ok());
}

TEST_F(SocketDirectoryTest, ALockThatAnotherHasByNowStaysWithIt) {
  SocketDirectory directory = Claimed();
  std::filesystem::remove(path_ + "/lock");
  {
    const SocketDirectory other = Claimed();
    EXPECT_EQ(directory.KeepClaim().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(directory.KeepClaim().ok());
}

TEST_F(SocketDirectoryTest, ADirectoryThatOthersCanWriteToByNowIsNotClaimedAgain) {
  SocketDirectory directory = Claimed();
  std::filesystem::rename(path_, root_ + "/old");
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(directory.KeepClaim().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(path_);
  std::filesystem::rename(root_ + "/old", path_);
  EXPECT_TRUE(directory.KeepClaim().ok()) << "the directory of the start is back";
}

// A link in the place of a socket must not lead to a file of somebody else.
TEST_F(SocketDirectoryTest, ALinkInTheSocketsPlaceIsReplacedAndNotFollowed) {
  const SocketDirectory directory = Claimed();
  std::ofstream(root_ + "/target") << "text";
  ASSERT_EQ(chmod((root_ + "/target").c_str(), 0600), 0);
  for (const char* const name : {"/x.sock", "/x.sock.new"}) {
    ASSERT_EQ(symlink((root_ + "/target").c_str(), (path_ + name).c_str()), 0);
  }
  ASSERT_TRUE(directory.Listen("x.sock", SOCK_STREAM, 0666).ok());
  EXPECT_EQ(ModeOf(root_ + "/target"), 0600u);
  EXPECT_EQ(ModeOf(path_ + "/x.sock"), 0666u);
}

}  // namespace
}  // namespace rnicd::transport
