#include "base/hex.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace rnicd {
namespace {

TEST(Hex, EachByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(BytesFromHex(absl::BytesToHexString(all)), all);
  EXPECT_EQ(BytesFromHex("fE0A"), "\xfe\x0a");
  EXPECT_EQ(BytesFromHex(""), "");
}

TEST(Hex, NothingButPairsOfDigitsIsRead) {
  for (const char* text : {"0", "fef", "0g", "g0", "0x", "+1", "-1", " 1", "1 ", "fe fe"}) {
    EXPECT_EQ(BytesFromHex(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace rnicd
