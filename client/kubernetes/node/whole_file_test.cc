#include "client/kubernetes/node/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/foreign_file_linux_test.h"
#include "client/kubernetes/node/folder_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::UnorderedElementsAre;

class WholeFileTest : public FolderFixture {
 protected:
  std::string Refusal() const {
    const auto content = ReadOwnFile(Path("file"), 100);
    EXPECT_EQ(content.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(content.status().message());
  }
};

TEST_F(WholeFileTest, WhatWasWrittenIsRead) {
  ASSERT_TRUE(ReplaceFile(Path("file"), std::string("a\0b", 3)).ok());
  EXPECT_THAT(*ReadOwnFile(Path("file"), 3), Optional(std::string("a\0b", 3)));
}

TEST_F(WholeFileTest, NoFileIsNoError) { EXPECT_EQ(*ReadOwnFile(Path("file"), 100), std::nullopt); }

TEST_F(WholeFileTest, WhatACrashLeftBehindIsNoHindrance) {
  Write("file", "old");
  Write("file.new", "half of a new fi");
  EXPECT_THAT(*ReadOwnFile(Path("file"), 100), Optional(std::string("old")));
  ASSERT_TRUE(ReplaceFile(Path("file"), "new").ok());
  EXPECT_THAT(*ReadOwnFile(Path("file"), 100), Optional(std::string("new")));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

// An attacker who creates that link would make the plugin write to a file of the attacker's choice.
TEST_F(WholeFileTest, IsNotWrittenThroughALink) {
  Write("victim", "precious");
  ASSERT_EQ(symlink(Path("victim").c_str(), Path("file.new").c_str()), 0);
  ASSERT_TRUE(ReplaceFile(Path("file"), "new").ok());
  EXPECT_EQ(Read("victim"), "precious");
}

TEST_F(WholeFileTest, AFailureLeavesTheOldFileAndNothingElse) {
  std::filesystem::create_directories(Path("file/inside"));
  EXPECT_THAT(ReplaceFile(Path("file"), "new").message(), HasSubstr("file: rename: "));
  EXPECT_THAT(Names(), UnorderedElementsAre("file"));
  EXPECT_THAT(ReplaceFile(Path("missing/file"), "new").message(), HasSubstr("missing/file.new: open: ENOENT"));
}

TEST_F(WholeFileTest, ALinkIsRefused) {
  Write("target", "x");
  ASSERT_EQ(symlink("target", Path("file").c_str()), 0);
  EXPECT_THAT(Refusal(), HasSubstr("is a symbolic link"));
}

TEST_F(WholeFileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(Path("file").c_str(), 0600), 0);
  EXPECT_THAT(Refusal(), HasSubstr("is not a regular file"));
  std::filesystem::remove(Path("file"));
  std::filesystem::create_directory(Path("file"));
  EXPECT_THAT(Refusal(), HasSubstr("is not a regular file"));
}

TEST_F(WholeFileTest, WhatOthersMayWriteIsRefused) {
  Write("file", "x");
  for (const mode_t mode : {0620, 0602}) {
    ASSERT_EQ(chmod(Path("file").c_str(), mode), 0);
    EXPECT_THAT(Refusal(), HasSubstr("is writable by group or others"));
  }
  ASSERT_EQ(chmod(Path("file").c_str(), 0644), 0);
  EXPECT_TRUE(ReadOwnFile(Path("file"), 100).ok());
}

TEST_F(WholeFileTest, AFileThatAnotherUserCanWriteIsRefused) {
  Write("file", "x");
  const std::string cause = LetAnotherUserWrite(Path("file"));
  EXPECT_EQ(Refusal(), Path("file") + ": " + cause);
}

TEST_F(WholeFileTest, WhatIsTooLargeIsRefused) {
  Write("file", std::string(100, 'x'));
  EXPECT_TRUE(ReadOwnFile(Path("file"), 100).ok());
  Write("file", std::string(101, 'x'));
  EXPECT_THAT(Refusal(), HasSubstr("is longer than 100 bytes"));
}

}  // namespace
}  // namespace rnicd::kubernetes
