#include "daemon/policy/policy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/foreign_file_test.h"
#include "daemon/policy/policy_fixture_test.h"

namespace rnicd::policy {
namespace {

using core::Resource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

constexpr char kSmallPolicy[] = "tenant { name: \"a\" }\ndefault_tenant: \"a\"\n";

TEST(ParsePolicy, AnEmptyFileLetsNobodyIn) {
  const auto policy = ParsePolicy("# nothing\n", "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->tenants, IsEmpty());
  EXPECT_EQ(policy->default_tenant, "");
  EXPECT_THAT(policy->roles, IsEmpty());
}

TEST(ParsePolicy, EveryConditionOfAMatchArrives) {
  const auto policy = ParsePolicy(R"(tenant {
    name: "a"
    match {
      uid: 0 gid: 7 pod_uid: "0123abcd-0123-4567-89ab-0123456789ab" pod_namespace: "n"
      pod_label { key: "k" value: "v" } pod_label { key: "l" value: "" }
    }
    match { gid: 0 }
  })",
                                  "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  ASSERT_EQ(policy->tenants.size(), 1u);
  ASSERT_EQ(policy->tenants[0].matches.size(), 2u);
  const core::Matcher& all = policy->tenants[0].matches[0];
  EXPECT_EQ(all.uid, 0u);
  EXPECT_EQ(all.gid, 7u);
  EXPECT_EQ(all.pod_uid, "0123abcd-0123-4567-89ab-0123456789ab");
  EXPECT_EQ(all.pod_namespace, "n");
  EXPECT_THAT(all.pod_labels, ElementsAre(Pair("k", "v"), Pair("l", "")));
  const core::Matcher& one = policy->tenants[0].matches[1];
  EXPECT_EQ(one.uid, std::nullopt);
  EXPECT_EQ(one.gid, 0u);
  EXPECT_EQ(one.pod_uid, std::nullopt);
  EXPECT_EQ(one.pod_namespace, std::nullopt);
  EXPECT_THAT(one.pod_labels, IsEmpty());
}

TEST(ParsePolicy, LimitsArriveWhereTheyBelong) {
  const auto policy = ParsePolicy(R"(tenant {
    name: "a" match { uid: 1 }
    limits { regions: 10 sessions: 3 requests_per_second: 100 }
    session_limits { regions: 5 windows: 6 requests_per_second: 50 }
  })",
                                  "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  const core::TenantLimits& limits = policy->tenants.at(0).limits;
  EXPECT_EQ(limits.tenant[Resource::kRegions], 10u);
  EXPECT_EQ(limits.tenant[Resource::kSessions], 3u);
  EXPECT_EQ(limits.tenant[Resource::kWindows], 0u);
  EXPECT_EQ(limits.session[Resource::kRegions], 5u);
  EXPECT_EQ(limits.session[Resource::kWindows], 6u);
  EXPECT_EQ(limits.tenant_rate.per_second, 100u);
  EXPECT_EQ(limits.session_rate.per_second, 50u);
}

TEST(ParsePolicy, EachSharingArrives) {
  const std::pair<const char*, core::Sharing> rows[] = {{"", core::Sharing::kOne},
                                                        {"sharing: SHARING_UNSPECIFIED", core::Sharing::kOne},
                                                        {"sharing: SHARING_ONE_TENANT", core::Sharing::kOne},
                                                        {"sharing: SHARING_EACH_UID", core::Sharing::kEachUid},
                                                        {"sharing: SHARING_EACH_POD", core::Sharing::kEachPod}};
  for (const auto& [text, sharing] : rows) {
    const auto policy = ParsePolicy(std::string("tenant { name: \"a\" match { uid: 1 } ") + text + " }", "f");
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(policy->tenants.at(0).sharing, sharing) << text;
  }
}

TEST(ParsePolicy, RolesArriveInTheirOrder) {
  const auto policy = ParsePolicy(
      "role { match { uid: 5 } role: CALLER_ROLE_DEVICE_PLUGIN } role { match { gid: 6 } role: CALLER_ROLE_OPERATOR }",
      "f");
  ASSERT_TRUE(policy.ok()) << policy.status();
  ASSERT_EQ(policy->roles.size(), 2u);
  EXPECT_EQ(policy->roles[0].role, core::Role::kDevicePlugin);
  EXPECT_EQ(policy->roles[0].match.uid, 5u);
  EXPECT_EQ(policy->roles[1].role, core::Role::kOperator);
  EXPECT_EQ(policy->roles[1].match.gid, 6u);
}

TEST(ParsePolicy, CommentsMayStandAnywhere) {
  EXPECT_THAT(ErrorsIn("# ä\ntenant { # b\n name: \"a\" # c\n}\n#d\ndefault_tenant: \"a\" # e"), IsEmpty());
}

TEST(ParsePolicy, ANulByteIsRefusedAtItsLine) {
  const std::string text = std::string("# one\n# two") + '\0' + "\n" + kSmallPolicy;
  EXPECT_THAT(ErrorsIn(text), ElementsAre("2: contains a NUL byte"));
}

TEST(ParsePolicy, ATextThatIsTooLongIsRefused) {
  std::string text = kSmallPolicy;
  text.append(kPolicyBytesMax - text.size(), '\n');
  EXPECT_THAT(ErrorsIn(text), IsEmpty());
  EXPECT_THAT(ErrorsIn(text + "\n"), ElementsAre("1: the file is longer than 1048576 bytes"));
}

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
