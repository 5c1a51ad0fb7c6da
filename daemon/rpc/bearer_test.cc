#include "daemon/rpc/bearer.h"

#include <gtest/gtest.h>

#include <string>

namespace rnicd::rpc {
namespace {

TEST(Bearer, IsTheSchemeAndTheSecret) {
  const SecretDigest secret = SecretDigest::Of("secret");
  EXPECT_TRUE(IsBearerOf(secret, "Bearer secret"));
  for (const char* value : {"", "secret", "Bearer", "Bearer ", "bearer secret", "Bearer  secret", "Bearer secret ",
                            "Bearer secre", "Basic secret"}) {
    EXPECT_FALSE(IsBearerOf(secret, value)) << value;
  }
}

TEST(Bearer, WhatIsLongerThanAnySecretIsNotTried) {
  const std::string longest(256, 'x');
  EXPECT_TRUE(IsBearerOf(SecretDigest::Of(longest), "Bearer " + longest));
  EXPECT_FALSE(IsBearerOf(SecretDigest::Of(longest + "x"), "Bearer " + longest + "x"));
}

}  // namespace
}  // namespace rnicd::rpc
