#include "base/secrets/secret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>

namespace rnicd {
namespace {

const std::string kSecret = "rnicd-grant-0123456789abcdef-00112233445566778899aabbccddeeff";

std::array<uint8_t, 32> BytesOf(const SecretDigest& digest) {
  static_assert(std::is_trivially_copyable_v<SecretDigest> && sizeof(SecretDigest) == 32);
  std::array<uint8_t, 32> bytes;
  std::memcpy(bytes.data(), &digest, sizeof(digest));
  return bytes;
}

// The example of FIPS 180-2, appendix B.1.
TEST(SecretDigest, IsTheSha256AndNothingElse) {
  const std::array<uint8_t, 32> expected = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
                                            0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
                                            0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
  EXPECT_EQ(BytesOf(SecretDigest::Of("abc")), expected);
}

TEST(SecretDigest, ReportsItsBytes) {
  const SecretDigest digest = SecretDigest::Of(kSecret);
  EXPECT_TRUE(std::ranges::equal(digest.bytes(), BytesOf(digest)));
}

TEST(SecretDigest, MatchesItsSecret) {
  const SecretDigest digest = SecretDigest::Of(kSecret);
  EXPECT_TRUE(digest.Matches(kSecret));
  EXPECT_TRUE(digest.Matches(std::string(kSecret)));
}

TEST(SecretDigest, ASecretThatDiffersInOneBitIsAnother) {
  const SecretDigest digest = SecretDigest::Of(kSecret);
  for (size_t bit = 0; bit < 8 * kSecret.size(); ++bit) {
    std::string other = kSecret;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(digest.Matches(other)) << "bit " << bit;
  }
}

TEST(SecretDigest, ALongerOrShorterSecretIsAnother) {
  const SecretDigest digest = SecretDigest::Of(kSecret);
  for (size_t length = 0; length < kSecret.size(); ++length) {
    EXPECT_FALSE(digest.Matches(kSecret.substr(0, length))) << length;
  }
  EXPECT_FALSE(digest.Matches(kSecret + '\0'));
  EXPECT_FALSE(digest.Matches(kSecret + kSecret));
}

TEST(SecretDigest, ZerosInsideASecretCount) {
  const SecretDigest digest = SecretDigest::Of(std::string_view("a\0b", 3));
  EXPECT_TRUE(digest.Matches(std::string_view("a\0b", 3)));
  EXPECT_FALSE(digest.Matches(std::string_view("a\0c", 3)));
}

TEST(SecretDigest, OneThatWasKeptElsewhereMatchesAsItDid) {
  const SecretDigest kept = SecretDigest::FromBytes(SecretDigest::Of(kSecret).bytes());
  EXPECT_TRUE(kept.Matches(kSecret));
  EXPECT_FALSE(kept.Matches(kSecret + "0"));
}

TEST(SecretDigest, OneOfNoSecretMatchesNothing) {
  EXPECT_FALSE(SecretDigest().Matches(""));
  EXPECT_FALSE(SecretDigest().Matches(std::string(32, '\0')));
  EXPECT_TRUE(SecretDigest::Of("").Matches(""));
}

}  // namespace
}  // namespace rnicd
