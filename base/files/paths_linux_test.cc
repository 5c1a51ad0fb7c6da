#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files/paths.h"

namespace rnicd {
namespace {

TEST(CleanPath, SlashesAndDotsThatMeanNothingGo) {
  EXPECT_EQ(CleanPath("/run/rnicd"), "/run/rnicd");
  for (const char* const same : {"/run/rnicd/", "/run/rnicd//", "//run//rnicd", "/run/./rnicd/.", "/./run/rnicd/./"}) {
    EXPECT_EQ(CleanPath(same), "/run/rnicd") << same;
  }
  EXPECT_EQ(CleanPath("s/"), "s");
  EXPECT_EQ(CleanPath("./s"), "s");
}

TEST(CleanPath, WhatHasNoNameStaysAPath) {
  EXPECT_EQ(CleanPath("/"), "/");
  EXPECT_EQ(CleanPath("//."), "/");
  EXPECT_EQ(CleanPath("."), ".");
  EXPECT_EQ(CleanPath("./"), ".");
  EXPECT_EQ(CleanPath(""), "");
}

TEST(CleanPath, AStepUpwardsStaysBecauseWhatItLeavesMayBeALink) {
  EXPECT_EQ(CleanPath("/run/a/../rnicd/"), "/run/a/../rnicd");
  EXPECT_EQ(CleanPath("../"), "..");
}

TEST(PathBeside, IsTheSameHoweverTheFolderIsWritten) {
  for (const char* const folder : {"/run/rnicd", "/run/rnicd/", "/run/rnicd/.", "//run/./rnicd//"}) {
    EXPECT_EQ(PathBeside(folder, "-admin"), "/run/rnicd-admin") << folder;
  }
  EXPECT_EQ(PathBeside("s/", "-admin"), "s-admin");
}

TEST(PathBeside, AFolderWithoutANameIsAskedForIt) {
  const std::string here = std::filesystem::current_path().string();
  for (const char* const folder : {".", "./", "./."}) {
    EXPECT_EQ(PathBeside(folder, "-admin"), here + "-admin") << folder;
  }
  EXPECT_EQ(PathBeside("..", "-admin"), std::filesystem::current_path().parent_path().string() + "-admin");
  EXPECT_EQ(PathBeside("/no/such/..", "-admin"), "/no/such/..-admin");
}

TEST(IsAbsolutePath, BlanksAndControlCharactersAtItsEndsAreMistakes) {
  EXPECT_TRUE(IsAbsolutePath("/run/rnicd"));
  EXPECT_TRUE(IsAbsolutePath("/run/rnicd of mine/"));
  for (const char* const bad :
       {"", "run", "./run", "/run\r", "/run\n", "/run ", " /run", "\t/run", "/ru\x01n", "/run\x7f"}) {
    EXPECT_FALSE(IsAbsolutePath(bad)) << bad;
  }
}

TEST(NamesPartOf, ANameThatBeginsTheSameIsAnother) {
  EXPECT_TRUE(NamesPartOf("/run/rnicd", "/run/rnicd"));
  EXPECT_TRUE(NamesPartOf("/run/rnicd", "/run/rnicd/admin"));
  EXPECT_TRUE(NamesPartOf("/", "/run"));
  EXPECT_FALSE(NamesPartOf("/run/rnicd", "/run/rnicd-admin"));
  EXPECT_FALSE(NamesPartOf("/run/rnicd", "/run"));
}

}  // namespace
}  // namespace rnicd
