#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files/foreign_file_linux_test.h"
#include "daemon/policy/policy_file.h"
#include "daemon/policy/policy_fixture_test.h"

namespace rnicd::policy {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kSmallPolicy[] = "tenant { name: \"a\" }\ndefault_tenant: \"a\"\n";

// A separate folder for each test.
class LoadPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rnicd_policy_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/policy.textproto";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text, mode_t mode = 0644) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  std::string Refusal() const { return std::string(LoadPolicy(path_).status().message()); }

  std::string folder_;
  std::string path_;
};

TEST_F(LoadPolicyTest, AFileIsReadAndItsMistakesBearItsPath) {
  Write(kSmallPolicy, 0600);
  const auto policy = LoadPolicy(path_);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->default_tenant, "a");
  Write("\nwrong: 1\n");
  EXPECT_THAT(Refusal(), StartsWith(path_ + ":2: "));
}

TEST_F(LoadPolicyTest, AFileThatIsNotThereIsRefused) {
  EXPECT_EQ(Refusal(), path_ + ": open: ENOENT");
  EXPECT_EQ(LoadPolicy(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(LoadPolicy("").status().message()), ": open: ENOENT");
}

TEST_F(LoadPolicyTest, AFolderIsRefused) {
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  EXPECT_EQ(Refusal(), path_ + ": is not a regular file");
}

TEST_F(LoadPolicyTest, APipeIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0644), 0);
  EXPECT_EQ(Refusal(), path_ + ": is not a regular file");
}

TEST_F(LoadPolicyTest, AFileThatOthersMayWriteIsRefused) {
  for (const mode_t mode : {0664, 0646, 0622, 0666}) {
    Write(kSmallPolicy, mode);
    EXPECT_EQ(Refusal(), path_ + ": is writable by group or others") << std::oct << mode;
  }
}

TEST_F(LoadPolicyTest, AFileThatAnotherUserCanWriteIsRefused) {
  Write(kSmallPolicy);
  const std::string cause = LetAnotherUserWrite(path_);
  EXPECT_EQ(Refusal(), path_ + ": " + cause);
}

TEST_F(LoadPolicyTest, AFileThatIsTooLongIsRefused) {
  Write(kSmallPolicy + std::string(2 * kPolicyBytesMax, '\n'));
  EXPECT_EQ(Refusal(), path_ + ": is longer than 1048576 bytes");
}

TEST_F(LoadPolicyTest, ALinkIsFollowedAndTheFileBehindItChecked) {
  Write(kSmallPolicy);
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_TRUE(LoadPolicy(link).ok());
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  EXPECT_THAT(std::string(LoadPolicy(link).status().message()), HasSubstr("writable by group or others"));
}

// The names are links: policy.textproto to ..data/policy.textproto, and ..data to the directory of this version.
TEST_F(LoadPolicyTest, AMountedConfigMapIsRead) {
  const std::string version = folder_ + "/..2025_01_01";
  ASSERT_EQ(mkdir(version.c_str(), 0755), 0);
  Write(kSmallPolicy, 0444);
  std::filesystem::rename(path_, version + "/policy.textproto");
  ASSERT_EQ(symlink("..2025_01_01", (folder_ + "/..data").c_str()), 0);
  ASSERT_EQ(symlink("..data/policy.textproto", path_.c_str()), 0);
  const auto policy = LoadPolicy(path_);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->default_tenant, "a");
}

}  // namespace
}  // namespace rnicd::policy
