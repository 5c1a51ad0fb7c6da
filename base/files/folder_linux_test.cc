#include "base/files/folder_linux.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace rnicd {
namespace {

class IsPartOfTest : public ::testing::Test {
 protected:
  IsPartOfTest() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    root_ = mkdtemp(name);
    std::filesystem::create_directories(root_ + "/s/in/deep");
    std::filesystem::create_directory(root_ + "/s-admin");
    std::filesystem::create_directory(root_ + "/m");
  }
  ~IsPartOfTest() override { std::filesystem::remove_all(root_); }

  bool IsPart(const std::string& path) { return IsPartOf(root_ + "/s", root_ + path).value(); }

  std::string root_;
};

TEST_F(IsPartOfTest, AFolderAndWhatIsBelowItAre) {
  for (const char* const path : {"/s", "/s/", "/s/.", "/s/in", "/s/in/deep", "/s/in/..", "/s-admin/../s/in"}) {
    EXPECT_TRUE(IsPart(path)) << path;
  }
}

TEST_F(IsPartOfTest, WhatIsBesideOrAboveIsNot) {
  for (const char* const path : {"/s-admin", "/m", "", "/s/..", "/s/in/../../m"}) {
    EXPECT_FALSE(IsPart(path)) << path;
  }
  EXPECT_TRUE(IsPartOf("/", root_).value());
}

TEST_F(IsPartOfTest, ALinkIsFollowedOnBothSides) {
  std::filesystem::create_directory_symlink("s/in", root_ + "/link");
  EXPECT_TRUE(IsPart("/link"));
  EXPECT_TRUE(IsPart("/link/deep"));
  EXPECT_FALSE(IsPart("/link/../..")) << "that is above";
  EXPECT_TRUE(IsPartOf(root_ + "/link", root_ + "/s/in/deep").value());
  EXPECT_FALSE(IsPartOf(root_ + "/link", root_ + "/s").value());
}

TEST_F(IsPartOfTest, WhatDoesNotExistIsPartOfNothing) {
  EXPECT_FALSE(IsPart("/none"));
  EXPECT_FALSE(IsPartOf(root_ + "/none", root_ + "/s").value());
}

TEST_F(IsPartOfTest, AFileIsNoFolder) {
  std::filesystem::create_symlink("/dev/null", root_ + "/file");
  EXPECT_FALSE(IsPartOf(root_ + "/s", root_ + "/file").ok());
}

// Mounts below the folder are from now on this thread's alone. The root of a chroot may be none.
bool HasMountsOfItsOwn(std::filesystem::path folder) {
  if (unshare(CLONE_NEWNS) != 0) {
    return false;
  }
  while (mount("", folder.c_str(), nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    if (!folder.has_relative_path()) {
      return false;
    }
    folder = folder.parent_path();
  }
  return true;
}

// Without root there are no mounts, and the folders are different ones.
TEST_F(IsPartOfTest, AFolderThatIsMountedInASecondPlaceIsTheSame) {
  std::thread([this] {
    const auto mount_at_m = [this](const char* part) {
      return mount((root_ + part).c_str(), (root_ + "/m").c_str(), nullptr, MS_BIND, nullptr) == 0;
    };
    const bool own_mounts = HasMountsOfItsOwn(root_);
    EXPECT_TRUE(own_mounts || geteuid() != 0);
    for (const char* const part : {"/s", "/s/in", "/s/in/deep"}) {
      const bool mounted = own_mounts && mount_at_m(part);
      std::filesystem::create_directory(root_ + "/m/adm");
      EXPECT_EQ(IsPart("/m"), mounted) << part;
      EXPECT_EQ(IsPart("/m/adm"), mounted) << part;
      EXPECT_EQ(IsPartOf(root_ + "/m", root_ + part).value(), mounted) << part;
      if (mounted) {
        umount((root_ + "/m").c_str());
      }
    }
    if (own_mounts && mount_at_m("/s-admin")) {
      EXPECT_FALSE(IsPart("/m")) << "a mount of another folder of the same file system";
    }
  }).join();
}

}  // namespace
}  // namespace rnicd
