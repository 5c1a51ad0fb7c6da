#include "base/ndk/network_address.h"

#include <gtest/gtest.h>

#include <string_view>

namespace rnicd {
namespace {

using std::string_view_literals::operator""sv;

TEST(IpAddress, TextAndBackIsTheSameText) {
  for (const std::string_view text : {"10.98.0.1", "0.0.0.0", "::", "fe80::1", "2001:db8::ff00:42:8329"}) {
    ASSERT_TRUE(IpAddress::FromText(text).has_value()) << text;
    EXPECT_EQ(IpAddress::FromText(text)->ToText(), text);
  }
}

TEST(IpAddress, OneAddressHasOneValue) {
  EXPECT_EQ(IpAddress::FromText("::ffff:10.98.0.1"), IpAddress::FromText("10.98.0.1"));
}

TEST(IpAddress, OtherTextIsNone) {
  for (const std::string_view text :
       {""sv, "10.98.0"sv, "10.98.0.256"sv, " 10.98.0.1"sv, "10.98.0.1\0"sv, "fe80::1%2"sv, "host"sv}) {
    EXPECT_FALSE(IpAddress::FromText(text).has_value()) << text;
  }
}

TEST(IpAddress, BothWildcardsAreOne) {
  EXPECT_TRUE(IpAddress::FromText("::")->is_wildcard());
  EXPECT_TRUE(IpAddress::FromText("0.0.0.0")->is_wildcard());
  EXPECT_FALSE(IpAddress::FromText("0.0.0.1")->is_wildcard());
}

bool Contains(std::string_view prefix, std::string_view address) {
  return IpPrefix::FromText(prefix)->Contains(*IpAddress::FromText(address));
}

TEST(IpPrefix, ContainsWhatBeginsWithItsBits) {
  EXPECT_TRUE(Contains("10.98.0.0/15", "10.99.255.255"));
  EXPECT_FALSE(Contains("10.98.0.0/15", "10.100.0.0"));
  EXPECT_TRUE(Contains("10.98.0.1", "10.98.0.1"));
  EXPECT_FALSE(Contains("10.98.0.1", "10.98.0.2"));
  EXPECT_TRUE(Contains("fd00::/8", "fdff::1"));
  EXPECT_FALSE(Contains("fd00::/8", "fe00::1"));
}

TEST(IpPrefix, AllOfOneKindIsNoneOfTheOther) {
  EXPECT_TRUE(Contains("0.0.0.0/0", "255.255.255.255"));
  EXPECT_FALSE(Contains("0.0.0.0/0", "fe80::1"));
  EXPECT_TRUE(Contains("::/0", "fe80::1"));
}

TEST(IpPrefix, OtherTextIsNone) {
  for (const std::string_view text : {"10.98.0.0/33", "10.98.0.0/-1", "10.98.0.0/+16", "10.98.0.0/16 ", "10.98.0.0/ 16",
                                      "10.98.0.1/16", "10.98.0.0/", "/8", "fd00::1/8"}) {
    EXPECT_FALSE(IpPrefix::FromText(text).has_value()) << text;
  }
}

TEST(IpPrefix, TextHasTheBits) {
  EXPECT_EQ(IpPrefix::FromText("10.98.0.0/16")->ToText(), "10.98.0.0/16");
  EXPECT_EQ(IpPrefix::FromText("fd00::/8")->ToText(), "fd00::/8");
  EXPECT_EQ(IpPrefix::FromText("fe80::1")->ToText(), "fe80::1/128");
}

TEST(NetworkAddress, TextHasTheAddressAndThePort) {
  EXPECT_EQ((NetworkAddress{.ip = *IpAddress::FromText("10.98.0.1"), .port = 4791}.ToText()), "10.98.0.1:4791");
  EXPECT_EQ((NetworkAddress{.ip = *IpAddress::FromText("fe80::1"), .port = 80}.ToText()), "[fe80::1]:80");
}

}  // namespace
}  // namespace rnicd
