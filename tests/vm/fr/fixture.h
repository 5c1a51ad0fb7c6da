#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/vm/fr/card.h"
#include "tests/vm/fr/module.h"

// A domain on the card taken by the module, a peer on the other card, eight mapped pages and a region of eight.
class FastRegistration : public testing::Test {
 protected:
  static constexpr uint32_t kPages = 8;
  static constexpr uint64_t kBase = 0xABCDEF0123456000;

  void SetUp() override {
    ASSERT_GE(control_.number(), 0) << "is the module loaded?";
    ASSERT_EQ(domain_.Map(pages_, mapping_), 0);
    ASSERT_EQ(domain_.CreateRegion(kPages, region_), 0);
  }

  Registration OnePage() const { return {.region = region_.region, .base = kBase}; }
  int Register(const Registration& registration, std::vector<rnicd_fr_run> runs) {
    return domain_.Run(RegisterOp(registration, 0, static_cast<uint32_t>(runs.size())), runs);
  }
  // The first page under the region's first slot.
  int Register(const Registration& registration) { return Register(registration, {FirstPage()}); }
  int Invalidate(uint32_t slot, uint32_t key) { return domain_.Run(InvalidateOp(region_.region, slot, key), {}); }
  rnicd_fr_run FirstPage() const { return {.mapping = mapping_, .page = 0, .count = 1, .reserved = 0}; }
  uint32_t Token(uint32_t slot, uint32_t key) const { return region_.keys[slot] | key; }

  Descriptor control_{OpenControl()};
  Card owner_{CardName()};
  Card peer_card_{PeerName()};
  Pages pages_{kPages};
  Domain domain_{control_.number(), owner_};
  Pair pair_{owner_, peer_card_};
  uint32_t mapping_ = 0;
  rnicd_fr_create_region region_ = {};
};
