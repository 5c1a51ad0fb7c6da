#include "client/ctl/line/units.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {

namespace {

TEST(Units, HoldTimesAreParsed) {
  EXPECT_EQ(ParseHoldTime("500ms"), HoldTime{.duration = std::chrono::milliseconds(500)});
  EXPECT_EQ(ParseHoldTime("2s"), HoldTime{.duration = std::chrono::seconds(2)});
  EXPECT_EQ(ParseHoldTime("5m"), HoldTime{.duration = std::chrono::minutes(5)});
  EXPECT_EQ(ParseHoldTime("1h"), HoldTime{.duration = std::chrono::hours(1)});
  EXPECT_EQ(ParseHoldTime("1d"), HoldTime{.duration = std::chrono::hours(24)});
  EXPECT_EQ(ParseHoldTime("0"), HoldTime{});
  EXPECT_EQ(ParseHoldTime("forever"), HoldTime{.forever = true});
  for (const char* text : {"", "s", "2", "-2s", "2 s", "366d", "Forever", "9000h", "99999999999999999999s"}) {
    EXPECT_EQ(ParseHoldTime(text), std::nullopt) << text;
  }
}

TEST(Units, DurationsHaveALongestOne) {
  EXPECT_EQ(ParseDuration("5m", std::chrono::minutes(5)), std::chrono::minutes(5));
  EXPECT_EQ(ParseDuration("301s", std::chrono::minutes(5)), std::nullopt);
  EXPECT_EQ(ParseDuration("3650d", std::chrono::days(3650)), std::chrono::days(3650));
  EXPECT_EQ(ParseDuration("forever", std::chrono::days(3650)), std::nullopt);
}

TEST(Units, HostAndPortAreParsed) {
  for (const char* text : {"listener.example:7471", "10.0.0.7:0", "[::]:65535"}) {
    const std::optional<HostPort> parsed = ParseHostPort(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(FormatHostPort(*parsed), text);
  }
  EXPECT_EQ(ParseHostPort("[fe80::1]:7471"), (HostPort{.host = "fe80::1", .port = 7471}));
  for (const char* text : {"", "7471", ":7471", "[]:7471", "[:7471", "::1:7471", "a:", "a:-1", "a:65536", "a:b"}) {
    EXPECT_EQ(ParseHostPort(text), std::nullopt) << text;
  }
}

TEST(Units, BytesAreShownWithAtMostOneDecimal) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(64u << 20), "64 MiB");
  EXPECT_EQ(FormatBytes(3u << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes((64u << 20) + 1), "64 MiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16777215.9 TiB");
}

TEST(Units, TimesAreShownInTwoUnits) {
  EXPECT_EQ(FormatMilliseconds(0), "0 ms");
  EXPECT_EQ(FormatMilliseconds(850), "850 ms");
  EXPECT_EQ(FormatMilliseconds(2'000), "2 s");
  EXPECT_EQ(FormatMilliseconds(2'599), "2.5 s");
  EXPECT_EQ(FormatMilliseconds(303'000), "5 m 3 s");
  EXPECT_EQ(FormatMilliseconds(7'800'000), "2 h 10 m");
  EXPECT_EQ(FormatMilliseconds(273'600'000), "3 d 4 h");
}

TEST(FormatUid, ShowsNoneAsADash) {
  EXPECT_EQ(FormatUid(0), "0");
  EXPECT_EQ(FormatUid(UINT32_MAX), "-");
}

TEST(Units, AddressesAndTokensAreHexadecimal) {
  EXPECT_EQ(FormatAddress(0x7f0012340000), "0x7f0012340000");
  EXPECT_EQ(FormatAddress(UINT64_MAX), "0xffffffffffffffff");
  EXPECT_EQ(FormatToken(0xab12), "0x0000ab12");
}

}  // namespace

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
