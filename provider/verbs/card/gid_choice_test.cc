#include "provider/verbs/card/gid_choice.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnicd::provider {
namespace {

GidEntry Entry(const std::string& address, uint32_t type, uint32_t index) {
  GidEntry entry{.index = index, .type = type};
  EXPECT_EQ(inet_pton(AF_INET6, address.c_str(), entry.gid.raw), 1) << address;
  return entry;
}

constexpr char kLinkLocal[] = "fe80::b89a:2cff:fe0d:5c11";
constexpr char kGlobal[] = "2001:db8::7";
constexpr char kIpv4[] = "::ffff:10.98.0.1";

std::string Chosen(const std::vector<GidEntry>& table, const GidRule& rule) {
  const GidEntry* const entry = ChooseGid(table, rule);
  return entry == nullptr ? "none" : GidText(entry->gid) + " type " + std::to_string(entry->type);
}

TEST(ChooseGid, TheBestIsTheSameInEveryOrderOfTheTable) {
  // The best first.
  std::vector<GidEntry> ranked;
  uint32_t index = 0;
  for (const uint32_t type : {IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_IB}) {
    for (const char* address : {kIpv4, kGlobal, kLinkLocal}) {
      ranked.push_back(Entry(address, type, index++));
    }
  }
  for (size_t best = 0; best < ranked.size(); ++best) {
    std::vector<GidEntry> table(ranked.begin() + static_cast<ptrdiff_t>(best), ranked.end());
    for (size_t turn = 0; turn < table.size(); ++turn) {
      const GidEntry* const chosen = ChooseGid(table, {});
      ASSERT_NE(chosen, nullptr);
      EXPECT_EQ(chosen->index, ranked[best].index);
      std::ranges::rotate(table, table.begin() + 1);
    }
  }
}

TEST(ChooseGid, OfEquallyGoodOnesTheFirst) {
  const std::vector<GidEntry> table = {Entry("::ffff:10.0.0.9", IBV_GID_TYPE_ROCE_V2, 4),
                                       Entry("::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2, 5)};
  EXPECT_EQ(ChooseGid(table, {}), table.data());
}

TEST(ChooseGid, TakesTheKindThatIsAskedForAndNoOther) {
  const std::vector<GidEntry> table = {Entry(kLinkLocal, IBV_GID_TYPE_ROCE_V1, 0),
                                       Entry(kLinkLocal, IBV_GID_TYPE_ROCE_V2, 1),
                                       Entry(kIpv4, IBV_GID_TYPE_ROCE_V1, 2), Entry(kIpv4, IBV_GID_TYPE_ROCE_V2, 3),
                                       Entry(kGlobal, IBV_GID_TYPE_ROCE_V2, 4)};
  EXPECT_EQ(Chosen(table, {.kind = GidRule::Kind::kIpv4}), "::ffff:10.98.0.1 type 2");
  EXPECT_EQ(Chosen(table, {.kind = GidRule::Kind::kIpv6}), "2001:db8::7 type 2");
  EXPECT_EQ(Chosen(table, {.kind = GidRule::Kind::kLinkLocal}), "fe80::b89a:2cff:fe0d:5c11 type 2");
  EXPECT_EQ(Chosen({table[0], table[4]}, {.kind = GidRule::Kind::kIpv4}), "none");
  EXPECT_EQ(Chosen({table[0], table[3]}, {.kind = GidRule::Kind::kIpv6}), "none");
  EXPECT_EQ(Chosen({table[3], table[4]}, {.kind = GidRule::Kind::kLinkLocal}), "none");
}

TEST(ChooseGid, FindsExactlyTheAddressThatIsAskedFor) {
  const std::vector<GidEntry> table = {Entry("::ffff:10.98.0.2", IBV_GID_TYPE_ROCE_V2, 0),
                                       Entry(kIpv4, IBV_GID_TYPE_ROCE_V1, 1), Entry(kIpv4, IBV_GID_TYPE_ROCE_V2, 2)};
  EXPECT_EQ(ChooseGid(table, *ParseGidRule("10.98.0.1")), &table[2]) << "the better type";
  EXPECT_EQ(ChooseGid(table, *ParseGidRule("::ffff:10.98.0.2")), table.data());
  EXPECT_EQ(ChooseGid(table, *ParseGidRule("10.98.0.3")), nullptr);
}

TEST(ChooseGid, AnEmptySlotIsNoAddress) {
  const std::vector<GidEntry> table = {GidEntry{.index = 0, .type = IBV_GID_TYPE_ROCE_V2}};
  for (const auto& text : {"auto", "ipv6", "::"}) {
    EXPECT_EQ(ChooseGid(table, *ParseGidRule(text)), nullptr) << text;
  }
  EXPECT_EQ(ChooseGid({}, {}), nullptr);
}

TEST(ParseGidRule, KnowsWordsAndAddresses) {
  const std::pair<std::string_view, GidRule::Kind> rows[] = {
      {"auto", GidRule::Kind::kBest},           {"ipv4", GidRule::Kind::kIpv4},
      {"ipv6", GidRule::Kind::kIpv6},           {"link-local", GidRule::Kind::kLinkLocal},
      {"10.0.0.1", GidRule::Kind::kAddress},    {"fe80::1", GidRule::Kind::kAddress},
      {"2001:DB8::7", GidRule::Kind::kAddress}, {"::ffff:1.2.3.4", GidRule::Kind::kAddress}};
  for (const auto& [text, kind] : rows) {
    const auto rule = ParseGidRule(text);
    ASSERT_TRUE(rule.has_value()) << text;
    EXPECT_EQ(rule->kind, kind) << text;
  }
  EXPECT_EQ(GidText(ParseGidRule("10.98.0.1")->address), "::ffff:10.98.0.1");
  EXPECT_EQ(GidText(ParseGidRule("2001:DB8:0:0::7")->address), "2001:db8::7");
}

TEST(ParseGidRule, RefusesEverythingElse) {
  using std::string_view_literals::operator""sv;
  for (const auto text : {""sv, "AUTO"sv, "auto "sv, "ipv"sv, "any"sv, "10.0.0"sv, "10.0.0.256"sv, "10.0.0.1/24"sv,
                          "fe80::1%eth0"sv, "fe80:::1"sv, "mlx5_0"sv, "10.0.0.1\0"sv, "10.0.0.1\0x"sv, " 10.0.0.1"sv}) {
    EXPECT_FALSE(ParseGidRule(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace rnicd::provider
