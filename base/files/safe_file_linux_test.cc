#include "base/files/safe_file_linux.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/files/foreign_file_linux_test.h"
#include "base/files/safe_file.h"

namespace rnicd {
namespace {

constexpr uid_t kUser = 1000;
constexpr uid_t kStranger = 1001;
constexpr char kForeign[] = "p: is owned by uid 1001, which is neither root nor the user of this process";
constexpr char kWritable[] = "p: is writable by group or others";

absl::Status Check(mode_t mode, uid_t owner, uid_t user = kUser) {
  struct stat facts = {};
  facts.st_mode = mode;
  facts.st_uid = owner;
  return CheckSafeFile("p", facts, user);
}

TEST(CheckSafeFile, AFileOfRootOrOfTheUserIsSafe) {
  for (const mode_t mode : {0600, 0640, 0644, 0444, 0400, 0755}) {
    EXPECT_TRUE(Check(S_IFREG | mode, 0).ok()) << std::oct << mode;
    EXPECT_TRUE(Check(S_IFREG | mode, kUser).ok()) << std::oct << mode;
    EXPECT_TRUE(Check(S_IFREG | mode, 0, 0).ok()) << std::oct << mode;
  }
}

TEST(CheckSafeFile, AFileOfAnybodyElseIsRefusedAlsoByRoot) {
  for (const mode_t mode : {0600, 0644, 0400}) {
    EXPECT_EQ(Check(S_IFREG | mode, kStranger), absl::FailedPreconditionError(kForeign)) << std::oct << mode;
    EXPECT_EQ(Check(S_IFREG | mode, kStranger, 0), absl::FailedPreconditionError(kForeign)) << std::oct << mode;
  }
}

TEST(CheckSafeFile, AFileThatOthersMayWriteIsRefused) {
  for (const mode_t mode : {0620, 0602, 0664, 0666, 0420}) {
    EXPECT_EQ(Check(S_IFREG | mode, 0), absl::FailedPreconditionError(kWritable)) << std::oct << mode;
    EXPECT_EQ(Check(S_IFREG | mode, kUser), absl::FailedPreconditionError(kWritable)) << std::oct << mode;
  }
}

TEST(CheckSafeFile, WhatIsNotARegularFileIsRefused) {
  for (const mode_t kind : {S_IFDIR, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK, S_IFLNK}) {
    EXPECT_EQ(Check(kind | 0600, kUser), absl::FailedPreconditionError("p: is not a regular file")) << std::oct << kind;
  }
}

// A folder of its own for each test.
class SafeFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rnicd_safe_file_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/file";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Both ways to open a file refuse it, for this cause.
  void ExpectRefused(const std::string& path, const std::string& cause) const {
    const absl::Status refusal = absl::FailedPreconditionError(path + ": " + cause);
    EXPECT_EQ(ReadSafeFile(path, {.bytes_max = 100}).status(), refusal);
    EXPECT_EQ(OpenSafeFileForAppend(path).status(), refusal);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SafeFileTest, TheWholeContentIsRead) {
  const std::string text = "a\n" + std::string(1, '\0') + std::string(200'000, 'b');
  Write(text);
  const auto content = ReadSafeFile(path_, {.bytes_max = size_t{1} << 20});
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(*content, text);
  Write("");
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 0}).value(), "");
}

TEST_F(SafeFileTest, AFileThatIsLongerThanAllowedIsRefused) {
  Write(std::string(100, 'x'));
  EXPECT_TRUE(ReadSafeFile(path_, {.bytes_max = 100}).ok());
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 99}).status(),
            absl::FailedPreconditionError(path_ + ": is longer than 99 bytes"));
}

TEST_F(SafeFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100}).status(), absl::NotFoundError(path_ + ": open: ENOENT"));
  EXPECT_EQ(OpenSafeFileForAppend(path_ + "/x").status(), absl::NotFoundError(path_ + "/x: open: ENOENT"));
}

TEST_F(SafeFileTest, WhatIsNotARegularFileIsRefusedAtOnce) {
  ExpectRefused(folder_, "is not a regular file");
  ExpectRefused("/dev/null", "is not a regular file");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused(path_, "is not a regular file");
  const UniqueFd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ExpectRefused(path_, "is not a regular file");
}

TEST_F(SafeFileTest, ASocketIsRefused) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path_.size(), sizeof(address.sun_path));
  path_.copy(address.sun_path, path_.size());
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ExpectRefused(path_, "is not a regular file");
}

TEST_F(SafeFileTest, AFileThatAnotherUserCanWriteIsRefusedAndStaysAsItIs) {
  Write("x");
  const std::string cause = LetAnotherUserWrite(path_);
  ExpectRefused(path_, cause);
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100, .follow_link = true}).status(),
            absl::FailedPreconditionError(path_ + ": " + cause));
  EXPECT_EQ(Content(), "x");
}

TEST_F(SafeFileTest, ALinkIsRefusedUnlessItMayBeFollowed) {
  Write("x");
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  ExpectRefused(link, "is a symbolic link");
  EXPECT_EQ(ReadSafeFile(link, {.bytes_max = 100, .follow_link = true}).value(), "x");
  const std::string cause = LetAnotherUserWrite(path_);
  EXPECT_EQ(ReadSafeFile(link, {.bytes_max = 100, .follow_link = true}).status(),
            absl::FailedPreconditionError(link + ": " + cause));
}

TEST_F(SafeFileTest, ALinkToItselfIsRefused) {
  ASSERT_EQ(symlink(path_.c_str(), path_.c_str()), 0);
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100, .follow_link = true}).status(),
            absl::FailedPreconditionError(path_ + ": open: ELOOP"));
}

TEST_F(SafeFileTest, WhatIsAppendedStandsBehindWhatWasThere) {
  Write("old ");
  const auto file = OpenSafeFileForAppend(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(write(file->get(), "new", 3), 3);
  EXPECT_EQ(Content(), "old new");
  EXPECT_NE(fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(SafeFileTest, AFileThatIsMadeIsForItsOwnerOnly) {
  const mode_t previous = umask(0);
  const auto file = OpenSafeFileForAppend(path_);
  umask(previous);
  ASSERT_TRUE(file.ok()) << file.status();
  struct stat facts = {};
  ASSERT_EQ(fstat(file->get(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
}

TEST_F(SafeFileTest, NothingIsMadeBehindALink) {
  ASSERT_EQ(symlink((folder_ + "/target").c_str(), path_.c_str()), 0);
  EXPECT_EQ(OpenSafeFileForAppend(path_).status(), absl::FailedPreconditionError(path_ + ": is a symbolic link"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/target"));
}

TEST(FileError, NamesTheFileTheCallAndTheError) {
  EXPECT_EQ(FileError("/a/b", "fsync", EIO), absl::FailedPreconditionError("/a/b: fsync: EIO"));
}

// --- EACCES that permissions do not explain ---

TEST(WhyDenied, PermissionsThatAllowItAreSaidToDoSo) {
  const std::string folder = testing::TempDir();
  const std::string file = folder + "rnicd-denied-" + std::to_string(getpid());
  std::ofstream(file) << "text";
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_NE(WhyDenied(file, EACCES, R_OK), "");
  EXPECT_NE(WhyDenied(file, EACCES, W_OK), "");
  EXPECT_NE(WhyDenied(file + "-new", EACCES, W_OK), "") << "it could be made";
  for (const int other : {ENOENT, EPERM, EROFS, ENOSPC, ENOTDIR}) {
    EXPECT_EQ(WhyDenied(file, other, R_OK), "") << other;
  }
  EXPECT_EQ(WhyDenied(file + "/below", EACCES, W_OK), "");
  EXPECT_EQ(WhyDenied(file + "-none/below", EACCES, W_OK), "");
  std::filesystem::remove(file);
}

TEST(WhyDenied, PermissionsThatForbidItNeedNoWord) {
  std::string folder = testing::TempDir() + "rnicd-denied-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/file";
  std::ofstream(file) << "text";
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  // Root passes every permission check, so the test runs as another user meanwhile.
  const uid_t user = geteuid();
  ASSERT_TRUE(user != 0 || seteuid(kStranger) == 0);
  EXPECT_EQ(WhyDenied(file, EACCES, R_OK), "");
  EXPECT_EQ(WhyDenied(file, EACCES, W_OK), "");
  EXPECT_EQ(WhyDenied(file + "-new", EACCES, W_OK), "");
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rnicd
