#include "daemon/app/host/hidden_paths_linux.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/host/system_door.h"

namespace rnicd::app {
namespace {

using ::testing::HasSubstr;

class HiddenPathsTest : public ::testing::Test {
 protected:
  HiddenPathsTest() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    root_ = mkdtemp(name);
    config_.system = std::make_shared<SystemConfig>();
    config_.system->socket_dir = root_ + "/s";
    config_.system->admin_socket_dir = root_ + "/s-admin";
    config_.system->door_dir = root_ + "/s-doors";
    std::filesystem::create_directories(root_ + "/s/in");
    std::filesystem::permissions(root_ + "/s", std::filesystem::perms(0755));
  }
  ~HiddenPathsTest() override { std::filesystem::remove_all(root_); }

  absl::Status Claim() const { return ClaimDoorNames(config_).status(); }

  void ExpectVisible(const std::string& flag) const {
    EXPECT_THAT(std::string(Claim().message()),
                AllOf(HasSubstr("--" + flag + "="), HasSubstr("must not be --socket_dir="), HasSubstr("or in it")));
  }

  std::string root_;
  Config config_;
};

TEST_F(HiddenPathsTest, TheOperatorsDirectoryMayBeAnywhereElse) {
  EXPECT_TRUE(Claim().ok());
  config_.system->admin_socket_dir = root_ + "/s/in/../../other";
  EXPECT_TRUE(Claim().ok()) << Claim();
}

TEST_F(HiddenPathsTest, TheDoorsAreNotInTheDirectoryThatContainersSee) {
  std::filesystem::create_directory_symlink("s/in", root_ + "/inner");
  for (const char* const directory : {"/s", "/s/doors", "/inner/doors"}) {
    config_.system->door_dir = root_ + directory;
    ExpectVisible("door_dir");
  }
  EXPECT_FALSE(std::filesystem::exists(root_ + "/s/doors")) << "nothing was made";
}

TEST_F(HiddenPathsTest, TheOperatorsDirectoryIsNotInTheOneContainersSeeByAnyName) {
  std::filesystem::create_directory_symlink("s", root_ + "/link");
  std::filesystem::create_directory_symlink("s/in", root_ + "/inner");
  for (const char* const directory :
       {"/link", "/link/admin", "/inner/admin", "/s/in/../admin", "/s-x/../s/in", "/inner/.."}) {
    std::filesystem::create_directory(root_ + "/s-x");
    config_.system->admin_socket_dir = root_ + directory;
    ExpectVisible("admin_socket_dir");
  }
  EXPECT_FALSE(std::filesystem::exists(root_ + "/s/admin")) << "nothing was made";
  EXPECT_FALSE(std::filesystem::exists(root_ + "/s/in/admin"));
}

// Containers could read the one, and write the other.
TEST_F(HiddenPathsTest, NeitherAuditLogNorPolicyIsWhereContainersSeeIt) {
  config_.audit_log = root_ + "/s/audit";
  ExpectVisible("audit_log");
  config_.audit_log = root_ + "/s-admin/../s/in/audit";
  ExpectVisible("audit_log");
  config_.audit_log = root_ + "/audit";
  EXPECT_TRUE(Claim().ok());
  config_.policy_file = root_ + "/s/policy";
  ExpectVisible("policy_file");
  std::ofstream(root_ + "/s/in/policy") << "";
  std::filesystem::create_symlink("s/in/policy", root_ + "/policy");
  config_.policy_file = root_ + "/policy";
  ExpectVisible("policy_file");
}

TEST_F(HiddenPathsTest, ALinkAsTheDirectoryOfSocketsIsRefusedAsALink) {
  std::filesystem::create_directory_symlink("s", root_ + "/link");
  config_.system->socket_dir = root_ + "/link";
  EXPECT_THAT(std::string(Claim().message()), HasSubstr("/link: is a symbolic link; name the directory behind it"));
}

}  // namespace
}  // namespace rnicd::app
