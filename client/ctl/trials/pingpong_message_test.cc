#include "client/ctl/trials/pingpong_message.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

// As kPeerLineMax of peer_link_linux.h.
constexpr size_t kLineMax = 512;

// The line as a reader gets it.
std::string WithoutEnd(std::string line) {
  EXPECT_TRUE(line.ends_with('\n'));
  EXPECT_LE(line.size(), kLineMax);
  line.pop_back();
  return line;
}

PingpongOffer Offer(uint64_t address, uint32_t token, uint64_t bytes) {
  return {.memory = {.address = {address}, .token = {token}}, .bytes = bytes};
}

std::string ErrorOfHello(const std::string& line) {
  return std::string(ParsePingpongHello(line, true).status().message());
}

TEST(PingpongMessage, LargestHelloSurvives) {
  const PingpongHello hello{.queue_pair = std::string(64, '\xff'), .offer = Offer(UINT64_MAX, UINT32_MAX, UINT64_MAX)};
  const auto parsed = ParsePingpongHello(WithoutEnd(PingpongHelloLine(hello)), true);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->queue_pair, hello.queue_pair);
  EXPECT_EQ(parsed->offer->memory.address.value, UINT64_MAX);
  EXPECT_EQ(parsed->offer->memory.token.value, UINT32_MAX);
  EXPECT_EQ(parsed->offer->bytes, UINT64_MAX);
}

TEST(PingpongMessage, SideThatConnectsOffersNoMemory) {
  const std::string line = WithoutEnd(PingpongHelloLine({.queue_pair = "a", .offer = std::nullopt}));
  EXPECT_EQ(line, R"({"rnicctl_pingpong":1,"queue_pair":"YQ=="})");
  const auto parsed = ParsePingpongHello(line, false);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->offer.has_value());
  EXPECT_EQ(ErrorOfHello(line),
            "the peer's message is invalid: 'base_address' is not a number from 0 to 18446744073709551615");
}

TEST(PingpongMessage, SeedSurvives) {
  const auto parsed = ParsePingpongSeed(WithoutEnd(PingpongSeedLine(UINT32_MAX)));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, UINT32_MAX);
}

TEST(PingpongMessage, OtherVersionIsNamed) {
  EXPECT_EQ(ParsePingpongSeed(R"({"rnicctl_pingpong":2,"seed":1})").status().message(),
            "the peer speaks version 2 of pingpong, and this rnicctl version 1");
}

TEST(PingpongMessage, RefusalNamesWhatIsWrong) {
  struct Case {
    std::string line;
    std::string problem;
  };
  const std::string whole = WithoutEnd(PingpongHelloLine({.queue_pair = "a", .offer = Offer(8, 7, 4096)}));
  ASSERT_EQ(ErrorOfHello(whole), "");
  const auto with = [&whole](const std::string& old, const std::string& replacement) {
    std::string line = whole;
    const size_t found = line.find(old);
    EXPECT_NE(found, std::string::npos) << old;
    return line.replace(found, old.size(), replacement);
  };
  const std::string too_long(88, 'A');  // 66 bytes
  const std::vector<Case> cases = {
      {"", "it is not a JSON object"},
      {"GET / HTTP/1.1\r", "it is not a JSON object"},
      {std::string(kLineMax, '['), "it is not a JSON object"},
      {std::string("\0\xff", 2), "it is not a JSON object"},
      {whole.substr(0, whole.size() - 1), "it is not a JSON object"},
      {"[1]", "it is not a JSON object"},
      {"{}", "'rnicctl_pingpong' is not a number from 1 to 4294967295"},
      {with("\"rnicctl_pingpong\":1", "\"rnicctl_pingpong\":\"1\""), "'rnicctl_pingpong' is not a number from 1 to "},
      {with("YQ==", ""), "'queue_pair' is not the Base64 of 1 to 64 bytes"},
      {with("YQ==", "Y!=="), "'queue_pair' is not the Base64 of 1 to 64 bytes"},
      {with("YQ==", too_long), "'queue_pair' is not the Base64 of 1 to 64 bytes"},
      {with("\"YQ==\"", "17"), "'queue_pair' is not the Base64 of 1 to 64 bytes"},
      {with("4096", "0"), "'bytes' is not a number from 1 to 18446744073709551615"},
      {with("4096", "-4096"), "'bytes' is not a number from 1 to "},
      {with("4096", "4096.5"), "'bytes' is not a number from 1 to "},
      {with("4096", "18446744073709551616"), "'bytes' is not a number from 1 to "},
      {with("base_address", "base"), "'base_address' is not a number from 0 to "},
      {with("\"remote_token\":7", "\"remote_token\":4294967296"),
       "'remote_token' is not a number from 0 to 4294967295"},
      {with("\"remote_token\":7", "\"remote_token\":null"), "'remote_token' is not a number from 0 to 4294967295"},
  };
  for (const Case& wrong : cases) {
    EXPECT_NE(ErrorOfHello(wrong.line).find("the peer's message is invalid: " + wrong.problem), std::string::npos)
        << wrong.line << ": " << ErrorOfHello(wrong.line);
  }
  EXPECT_EQ(ParsePingpongSeed(whole).status().message(),
            "the peer's message is invalid: 'seed' is not a number from 0 to 4294967295");
}

}  // namespace
}  // namespace rnicd::ctl
