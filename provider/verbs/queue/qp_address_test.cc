#include "provider/verbs/queue/qp_address.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace rnicd::provider {
namespace {

constexpr std::string_view kText = "fe80000000000000b89a2cfffe0d5c11.000011.1a2b3c.0000.5.8f31c2d4";

bool Same(const QpAddress& one, const QpAddress& other) {
  return std::memcmp(one.gid.raw, other.gid.raw, sizeof(one.gid.raw)) == 0 && one.qpn == other.qpn &&
         one.psn == other.psn && one.lid == other.lid && one.mtu == other.mtu && one.origin == other.origin;
}

TEST(QpAddress, ReadsTheExampleOfTheHeader) {
  const auto address = ParseQpAddress(kText);
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->gid.raw[0], 0xfe);
  EXPECT_EQ(address->gid.raw[15], 0x11);
  EXPECT_EQ(address->qpn, 0x11u);
  EXPECT_EQ(address->psn, 0x1a2b3cu);
  EXPECT_EQ(address->lid, 0u);
  EXPECT_EQ(address->mtu, IBV_MTU_4096);
  EXPECT_EQ(address->origin, 0x8f31c2d4u);
  EXPECT_EQ(FormatQpAddress(*address), kText);
}

TEST(QpAddress, WhatIsWrittenIsReadBack) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 2000; ++round) {
    QpAddress address;
    std::ranges::generate(address.gid.raw, [&] { return static_cast<uint8_t>(random()); });
    address.qpn = random() & 0xffffff;
    address.psn = random() & 0xffffff;
    address.lid = static_cast<uint16_t>(random());
    address.mtu = static_cast<ibv_mtu>(IBV_MTU_256 + random() % 5);
    address.origin = round % 4 == 0 ? 0 : static_cast<uint32_t>(random());
    const std::string text = FormatQpAddress(address);
    EXPECT_LE(text.size(), 62u);
    const auto back = ParseQpAddress(text);
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_TRUE(Same(*back, address)) << text;
  }
}

TEST(QpAddress, WhoeverIsNoDaemonLeavesOutTheOrigin) {
  const std::string_view plain = kText.substr(0, 53);
  const auto address = ParseQpAddress(plain);
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->origin, 0u);
  EXPECT_EQ(FormatQpAddress(*address), plain);
}

TEST(QpAddress, DigitsOfEitherCaseAreRead) {
  std::string upper(kText);
  std::ranges::transform(upper, upper.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  EXPECT_TRUE(Same(ParseQpAddress(upper).value_or(QpAddress{}), *ParseQpAddress(kText)));
}

TEST(QpAddress, EveryTruncationIsRefusedButTheOneWithoutOrigin) {
  for (size_t length = 0; length < kText.size(); ++length) {
    EXPECT_EQ(ParseQpAddress(kText.substr(0, length)).has_value(), length == 53) << length;
  }
}

TEST(QpAddress, AStrangeCharacterAnywhereIsRefused) {
  for (size_t place = 0; place < kText.size(); ++place) {
    for (const char strange : {'g', '-', '+', ' ', 'x', '\0', '.', '\xff'}) {
      std::string text(kText);
      if (text[place] == strange) {
        continue;
      }
      text[place] = strange;
      EXPECT_FALSE(ParseQpAddress(text).has_value()) << text;
    }
  }
  std::string longer(kText);
  longer.push_back('0');
  EXPECT_FALSE(ParseQpAddress(longer).has_value());
  longer.assign(kText).insert(longer.begin(), ' ');
  EXPECT_FALSE(ParseQpAddress(longer).has_value());
}

TEST(QpAddress, AnMtuThatIsNoneIsRefused) {
  for (const char mtu : {'0', '6', '7', '8', '9', 'a', 'f'}) {
    std::string text(kText);
    text[52] = mtu;
    EXPECT_FALSE(ParseQpAddress(text).has_value()) << mtu;
  }
}

TEST(QpAddress, NumbersThatAreTooWideAreCutToTheirField) {
  const std::string text = FormatQpAddress({.qpn = 0xff000011, .psn = 0xffffffff});
  const auto address = ParseQpAddress(text);
  ASSERT_TRUE(address.has_value()) << text;
  EXPECT_EQ(address->qpn, 0x11u);
  EXPECT_EQ(address->psn, 0xffffffu);
}

}  // namespace
}  // namespace rnicd::provider
