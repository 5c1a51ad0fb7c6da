#include "base/secrets/wipe.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace rnicd {
namespace {

TEST(Wipe, AFreedPieceOfMemoryIsClearFirst) {
  // The allocator hands out the last piece of a size again, and keeps its own data in the first bytes of a free one.
  constexpr size_t kBytes = 1000;
  constexpr size_t kAllocatorsOwn = 32;
  char* const first = static_cast<char*>(std::malloc(kBytes));
  ASSERT_NE(first, nullptr);
  std::memset(first, 's', kBytes);
  WipeAndFree(first);
  char* const second = static_cast<char*>(std::malloc(kBytes));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(std::string(second + kAllocatorsOwn, kBytes - kAllocatorsOwn).find('s'), std::string::npos);
  std::free(second);
}

TEST(Wipe, ClearsBytesWhereTheyAre) {
  std::string secret = "secret!";
  Wipe(secret.data(), 6);
  EXPECT_EQ(secret, std::string(6, '\0') + "!");
}

TEST(Wipe, NothingMayBeFreed) { WipeAndFree(nullptr); }

}  // namespace
}  // namespace rnicd
