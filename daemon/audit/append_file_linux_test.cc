#include "daemon/audit/append_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files/foreign_file_linux_test.h"
#include "daemon/audit/audit_fixture_linux_test.h"

namespace rnicd::audit {
namespace {

class AppendFileTest : public ::testing::Test {
 protected:
  AppendFile MustOpen() {
    auto file = AppendFile::Open(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  static void MustAppend(AppendFile& file, std::string_view text) {
    const AppendFile::Appended appended = file.Append(text);
    EXPECT_TRUE(appended.status.ok()) << appended.status;
    EXPECT_EQ(appended.bytes, text.size());
  }

  const Folder folder_;
  const std::string path_ = folder_ / "audit.log";
};

TEST_F(AppendFileTest, IsForItsOwnerOnly) {
  const mode_t previous = umask(0);
  MustOpen();
  umask(previous);
  struct stat facts = {};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(AppendFileTest, WhatWasThereStays) {
  WriteOwn(path_, "old\n");
  AppendFile file = MustOpen();
  MustAppend(file, "a\nb\n");
  EXPECT_EQ(ReadAll(path_), "old\na\nb\n");
}

// As a killed process or a power failure leaves it.
TEST_F(AppendFileTest, ATornLineStaysAndTheNextLineIsOneOfItsOwn) {
  WriteOwn(path_, "old\n{\"time\":\"2026");
  AppendFile file = MustOpen();
  MustAppend(file, "a\n");
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "old\n{\"time\":\"2026\na\nb\n");
}

TEST_F(AppendFileTest, ATornLineOfAFileThatTakesThePathIsEnded) {
  AppendFile file = MustOpen();
  MustAppend(file, "a\n");
  WriteOwn(folder_ / "torn", "x");
  std::filesystem::rename(folder_ / "torn", path_);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "x\nb\n");
}

TEST_F(AppendFileTest, ATornLineOnAFullDiskIsEndedWhenThereIsRoom) {
  WriteOwn(path_, "x");
  AppendFile file = MustOpen();
  {
    const FullDisk full(1);
    EXPECT_EQ(file.Append("lost\n").bytes, 0u);
  }
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "x\nb\n");
}

TEST_F(AppendFileTest, NothingButARegularFileIsOpened) {
  const std::string target = folder_ / "target";
  {
    std::ofstream(target) << "x\n";
  }
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  EXPECT_FALSE(AppendFile::Open(path_).ok()) << "a symbolic link";
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(AppendFile::Open(pipe).ok()) << "a pipe without a reader";
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_FALSE(AppendFile::Open(pipe).ok()) << "a pipe with a reader";
  close(reader);
  EXPECT_FALSE(AppendFile::Open("/dev/null").ok());
  EXPECT_FALSE(AppendFile::Open(folder_ / "").ok()) << "a folder";
  const absl::Status missing = AppendFile::Open(folder_ / "none/audit.log").status();
  EXPECT_NE(missing.message().find("none/audit.log"), std::string::npos) << missing;
  EXPECT_NE(missing.message().find("ENOENT"), std::string::npos) << missing;
  EXPECT_EQ(ReadAll(target), "x\n");
}

TEST_F(AppendFileTest, AFileThatAnotherUserCanWriteIsNotOpened) {
  WriteOwn(path_, "x\n");
  const std::string cause = LetAnotherUserWrite(path_);
  EXPECT_EQ(AppendFile::Open(path_).status(), absl::FailedPreconditionError(path_ + ": " + cause));
  EXPECT_EQ(ReadAll(path_), "x\n");
}

TEST_F(AppendFileTest, FollowsItsPathWhenTheFileIsRenamed) {
  AppendFile file = MustOpen();
  MustAppend(file, "a\n");
  const std::string rotated = folder_ / "audit.log.1";
  std::filesystem::rename(path_, rotated);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(rotated), "a\n");
  EXPECT_EQ(ReadAll(path_), "b\n");
}

TEST_F(AppendFileTest, FollowsItsPathWhenTheFileIsDeleted) {
  AppendFile file = MustOpen();
  MustAppend(file, "a\n");
  std::filesystem::remove(path_);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "b\n");
}

TEST_F(AppendFileTest, FollowsItsPathWhenAnotherFileTakesIt) {
  AppendFile file = MustOpen();
  WriteOwn(folder_ / "fresh", "made by logrotate\n");
  std::filesystem::rename(folder_ / "fresh", path_);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "made by logrotate\nb\n");
}

TEST_F(AppendFileTest, AFileThatIsEmptiedInItsPlaceIsFilledFromItsStart) {
  AppendFile file = MustOpen();
  MustAppend(file, "a\n");
  std::filesystem::resize_file(path_, 0);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "b\n");
}

TEST_F(AppendFileTest, GoesOnWithARenamedFileWhenItsPathCannotBeOpened) {
  AppendFile file = MustOpen();
  const std::string rotated = folder_ / "audit.log.1";
  std::filesystem::rename(path_, rotated);
  const std::string target = folder_ / "target";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  const AppendFile::Appended appended = file.Append("a\n");
  EXPECT_FALSE(appended.status.ok());
  EXPECT_EQ(appended.bytes, 2u);
  EXPECT_EQ(ReadAll(rotated), "a\n");
  EXPECT_FALSE(std::filesystem::exists(target)) << "a link was followed";
  std::filesystem::remove(path_);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "b\n");
}

TEST_F(AppendFileTest, GoesOnWithARenamedFileWhenAnotherUsersFileTakesItsPath) {
  AppendFile file = MustOpen();
  const std::string rotated = folder_ / "audit.log.1";
  std::filesystem::rename(path_, rotated);
  WriteOwn(path_, "x\n");
  const std::string cause = LetAnotherUserWrite(path_);
  const AppendFile::Appended appended = file.Append("a\n");
  EXPECT_EQ(appended.status, absl::FailedPreconditionError(path_ + ": " + cause));
  EXPECT_EQ(appended.bytes, 2u);
  EXPECT_EQ(ReadAll(rotated), "a\n");
  EXPECT_EQ(ReadAll(path_), "x\n");
  std::filesystem::remove(path_);
  MustAppend(file, "b\n");
  EXPECT_EQ(ReadAll(path_), "b\n");
}

TEST_F(AppendFileTest, NothingCountsAsWrittenIntoAFileWithoutAName) {
  AppendFile file = MustOpen();
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  const AppendFile::Appended appended = file.Append("a\n");
  EXPECT_FALSE(appended.status.ok());
  EXPECT_EQ(appended.bytes, 0u);
}

TEST_F(AppendFileTest, AFullDiskTakesWholeLinesOnly) {
  AppendFile file = MustOpen();
  {
    const FullDisk full(10);
    const AppendFile::Appended appended = file.Append("first\nsecond\nthird\n");
    EXPECT_FALSE(appended.status.ok());
    EXPECT_EQ(appended.bytes, 6u);
    const AppendFile::Appended none = file.Append("another\n");
    EXPECT_FALSE(none.status.ok());
    EXPECT_EQ(none.bytes, 0u);
  }
  EXPECT_EQ(ReadAll(path_), "first\n");
  MustAppend(file, "later\n");
  EXPECT_EQ(ReadAll(path_), "first\nlater\n");
}

}  // namespace
}  // namespace rnicd::audit
