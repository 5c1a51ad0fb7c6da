// What a token of the module gives to a peer, and when.
#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>

#include "tests/vm/fr/fixture.h"

namespace {

constexpr uint32_t kKey = 0x45;

TEST_F(FastRegistration, TokenIsRefusedBeforeItsTurnAndWorksAfter) {
  Registration registration = OnePage();
  registration.key = kKey;
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, kKey), 8));
  ASSERT_EQ(Register(registration), 0);
  pair_.peer().bytes()[0] = 0x5A;
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, kKey), 8));
  EXPECT_EQ(*pages_.at(0), 0x5A);
}

TEST_F(FastRegistration, BytesBeforeAndBehindAreRefused) {
  Registration registration = OnePage();
  registration.base = kBase + 16;
  registration.length = 64;
  ASSERT_EQ(Register(registration), 0);
  EXPECT_TRUE(pair_.Writes(kBase + 16, Token(0, 0), 64));
  EXPECT_FALSE(pair_.Writes(kBase + 15, Token(0, 0), 8));
  EXPECT_FALSE(pair_.Writes(kBase + 16 + 57, Token(0, 0), 8));
  EXPECT_TRUE(pair_.Writes(kBase + 16 + 56, Token(0, 0), 8));
}

TEST_F(FastRegistration, InvalidatedTokenIsRefused) {
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, 0), 8));
  ASSERT_EQ(Invalidate(0, 0), 0);
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, 0), 8));
}

TEST_F(FastRegistration, OldKeyByteIsRefused) {
  Registration registration = OnePage();
  registration.key = kKey;
  ASSERT_EQ(Register(registration), 0);
  ASSERT_EQ(Invalidate(0, kKey), 0);
  registration.key = kKey + 1;
  ASSERT_EQ(Register(registration), 0);
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, kKey), 8));
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, kKey + 1), 8));
}

TEST_F(FastRegistration, ReadOnlyRefusesWrites) {
  Registration registration = OnePage();
  registration.access = RNICD_FR_REMOTE_READ;
  ASSERT_EQ(Register(registration), 0);
  EXPECT_TRUE(pair_.Reads(kBase, Token(0, 0), 8));
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, 0), 8));
}

TEST_F(FastRegistration, BothSlotsAreInForceAtOnce) {
  Registration registration = OnePage();
  ASSERT_EQ(Register(registration), 0);
  registration.slot = 1;
  ASSERT_EQ(Register(registration, {{.mapping = mapping_, .page = 7, .count = 1, .reserved = 0}}), 0);
  pair_.peer().bytes()[0] = 1;
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, 0), 8));
  pair_.peer().bytes()[0] = 2;
  EXPECT_TRUE(pair_.Writes(kBase, Token(1, 0), 8));
  EXPECT_EQ(*pages_.at(0), 1);
  EXPECT_EQ(*pages_.at(7), 2);
}

TEST_F(FastRegistration, PagesOfSeveralMappingsAreOneRegion) {
  Pages others(2);
  uint32_t second = 0;
  ASSERT_EQ(domain_.Map(others, second), 0);
  Registration registration = OnePage();
  registration.length = 3 * kPage;
  ASSERT_EQ(Register(registration, {FirstPage(),
                                    {.mapping = second, .page = 1, .count = 1, .reserved = 0},
                                    {.mapping = mapping_, .page = 3, .count = 1, .reserved = 0}}),
            0);
  pair_.peer().bytes()[0] = 7;
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, 0), 1));
  EXPECT_TRUE(pair_.Writes(kBase + kPage, Token(0, 0), 1));
  EXPECT_TRUE(pair_.Writes(kBase + 2 * kPage, Token(0, 0), 1));
  EXPECT_EQ(*pages_.at(0), 7);
  EXPECT_EQ(*others.at(1), 7);
  EXPECT_EQ(*pages_.at(3), 7);
  EXPECT_EQ(domain_.Unmap(second), EBUSY);
  ASSERT_EQ(Invalidate(0, 0), 0);
  EXPECT_EQ(domain_.Unmap(second), 0);
  EXPECT_EQ(domain_.Unmap(mapping_), 0);
}

TEST_F(FastRegistration, PeerInvalidates) {
  ASSERT_EQ(Register(OnePage()), 0);
  pair_.owner().PostReceive();
  ASSERT_EQ(pair_.peer().SendWithInvalidate(Token(0, 0)), IBV_WC_SUCCESS);
  const ibv_wc completion = pair_.owner().Poll();
  EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
  EXPECT_EQ(completion.invalidated_rkey, Token(0, 0));
  EXPECT_FALSE(pair_.Writes(kBase, Token(0, 0), 8));
  // The owner does not have to know whether the peer was first.
  ASSERT_EQ(Invalidate(0, 0), 0);
  ASSERT_EQ(Register(OnePage()), 0);
  EXPECT_TRUE(pair_.Writes(kBase, Token(0, 0), 8));
}

// The longest list of the card, each page from another place, under the base address.
class ScatteredPages : public FastRegistration, public testing::WithParamInterface<uint64_t> {};

TEST_P(ScatteredPages, EveryByteIsWhereTheListSays) {
  const uint32_t count = domain_.region_pages_max();
  const uint32_t offset = GetParam() % kPage;
  Pages pages(count);
  uint32_t mapping = 0;
  rnicd_fr_create_region region;
  ASSERT_EQ(domain_.Map(pages, mapping), 0);
  ASSERT_EQ(domain_.CreateRegion(count, region), 0);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(7));  // NOLINT(cert-msc51-cpp): always the same order
  std::vector<rnicd_fr_run> runs;
  for (const uint32_t page : order) runs.push_back({.mapping = mapping, .page = page, .count = 1, .reserved = 0});
  const Registration all = {.region = region.region, .base = GetParam(), .length = count * kPage - offset};
  ASSERT_EQ(Register(all, runs), 0);

  std::vector<uint8_t>& bytes = pair_.peer().bytes();
  uint64_t written = 0;
  while (written < all.length) {
    const size_t part = std::min<uint64_t>(Endpoint::kBytes, all.length - written);
    for (size_t i = 0; i < part; ++i) bytes[i] = static_cast<uint8_t>((written + i) * 13 % 251);
    ASSERT_TRUE(pair_.Writes(all.base + written, region.keys[0], part));
    written += part;
  }
  for (uint64_t i = 0; i < all.length; ++i) {
    const uint64_t at = i + offset;
    ASSERT_EQ(pages.at(order[at / kPage])[at % kPage], static_cast<uint8_t>(i * 13 % 251)) << "byte " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Bases, ScatteredPages, testing::Values(0xABCDEF0123456234, 0));

}  // namespace
