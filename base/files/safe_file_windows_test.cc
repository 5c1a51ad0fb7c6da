#include <gtest/gtest.h>
#include <windows.h>
// Behind windows.h, whose types it uses.
#include <aclapi.h>
#include <sddl.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/files/safe_file.h"

namespace rnicd {
namespace {

// A folder of its own for each test.
class SafeFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rnicd_safe_file_" + std::to_string(GetCurrentProcessId());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(std::filesystem::create_directory(folder_));
    path_ = folder_ + "\\file";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    SetRights(L"D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)");
  }
  void SetRights(const wchar_t* sddl) const {
    PSECURITY_DESCRIPTOR descriptor = nullptr;
    ASSERT_NE(ConvertStringSecurityDescriptorToSecurityDescriptorW(sddl, 1, &descriptor, nullptr), 0);
    EXPECT_NE(SetFileSecurityW(std::filesystem::path(path_).c_str(), DACL_SECURITY_INFORMATION, descriptor), 0);
    LocalFree(descriptor);
  }
  void ExpectRefused(const std::string& path, const std::string& cause) const {
    const absl::Status refusal = absl::FailedPreconditionError(path + ": " + cause);
    EXPECT_EQ(ReadSafeFile(path, {.bytes_max = 100}).status(), refusal);
    EXPECT_EQ(OpenSafeFileForAppend(path).status(), refusal);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SafeFileTest, TheWholeContentIsReadUpToTheLimit) {
  const std::string text = "a\r\n" + std::string(1, '\0') + std::string(200'000, 'b');
  Write(text);
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = text.size()}).value(), text);
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = text.size() - 1}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SafeFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenSafeFileForAppend(path_ + "\\x").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SafeFileTest, WhatIsNotARegularFileIsRefused) {
  ExpectRefused("NUL", "is not a regular file");
  EXPECT_EQ(ReadSafeFile(folder_, {.bytes_max = 100}).status(),
            absl::FailedPreconditionError(folder_ + ": is not a regular file"));
}

TEST_F(SafeFileTest, AFileThatEverybodyMayWriteIsRefused) {
  Write("x");
  SetRights(L"D:P(A;;FA;;;OW)(A;;FA;;;WD)");
  ExpectRefused(path_, "is writable by others");
}

TEST_F(SafeFileTest, AFileThatOthersMayOnlyReadIsSafe) {
  Write("x");
  SetRights(L"D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)(A;;FR;;;WD)");
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100}).value(), "x");
}

TEST_F(SafeFileTest, WhatIsAppendedStandsBehindWhatWasThere) {
  Write("old ");
  const auto file = OpenSafeFileForAppend(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  DWORD written = 0;
  EXPECT_NE(WriteFile(LongToHandle(file->get()), "new", 3, &written, nullptr), 0);
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100}).value(), "old new");
}

TEST_F(SafeFileTest, AFileThatIsMadeIsSafe) {
  ASSERT_TRUE(OpenSafeFileForAppend(path_).ok());
  EXPECT_EQ(ReadSafeFile(path_, {.bytes_max = 100}).value(), "");
}

}  // namespace
}  // namespace rnicd
