#include "base/sid.h"

#include <string>

#include <gtest/gtest.h>

namespace rnicd {
namespace {

TEST(Sid, HasAnAuthorityAndOneToFifteenNumbers) {
  EXPECT_TRUE(IsSid("S-1-1-0"));
  EXPECT_TRUE(IsSid("S-1-5-32-545"));
  EXPECT_TRUE(IsSid("S-1-5-21-4294967295-0-3-1001"));
  std::string longest = "S-1-5";
  for (int count = 0; count < 15; ++count) {
    longest += "-7";
  }
  EXPECT_TRUE(IsSid(longest));
  EXPECT_FALSE(IsSid(longest + "-7"));
  EXPECT_FALSE(IsSid("S-1-5"));
}

// Each is compared as text, so there must be one form of each.
TEST(Sid, HasOneForm) {
  for (const char* text : {"", "S-1-", "S-2-5-18", "s-1-5-18", "S-1-5-018", "S-1-5-0x12", "S-1-5-18-", "S-1--5-18",
                           "S-1-5- 18", "S-1-5-+18", "S-1-5-4294967296", "S-1-5-18 ", "BA", "Users"}) {
    EXPECT_FALSE(IsSid(text)) << text;
  }
}

}  // namespace
}  // namespace rnicd
