#include "client/ctl/mr_flags.h"

#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

TEST(MrFlags, NamesAreCombined) {
  EXPECT_EQ(ParseMrFlags("none"), 0u);
  EXPECT_EQ(ParseMrFlags("local-write"), 1u);
  EXPECT_EQ(ParseMrFlags("remote-write"), 5u);
  EXPECT_EQ(ParseMrFlags("remote-read,read-sink"), 10u);
  EXPECT_EQ(ParseMrFlags("local-write,remote-read,remote-write,read-sink"), 15u);
}

TEST(MrFlags, UnknownNamesAreRefused) {
  for (const char* names : {"", ",", "write", "local-write,", "none,local-write", "local-write remote-read"}) {
    EXPECT_EQ(ParseMrFlags(names), std::nullopt) << names;
  }
}

TEST(MrFlags, NamesReadBack) {
  EXPECT_EQ(MrFlagNames(0), "none");
  EXPECT_EQ(MrFlagNames(5), "local-write,remote-write");
  EXPECT_EQ(MrFlagNames(10), "remote-read,read-sink");
}

}  // namespace
}  // namespace rnicd::ctl
