#include "daemon/core/tenant/page_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "daemon/core/session/race_fixture_test.h"

namespace rnicd::core {
namespace {

TEST(PageTree, CountsARunOnceHoweverLongItIs) {
  for (const uint64_t count : {1U, 127U, 128U, 129U, 128U * 128U, 128U * 128U + 1, 1U << 30}) {
    PageTree tree;
    EXPECT_EQ(tree.Raise(0, count), count);
    EXPECT_EQ(tree.Raise(0, count), 0u);
    EXPECT_EQ(tree.Lower(0, count), 0u);
    EXPECT_EQ(tree.Lower(0, count), count);
  }
}

TEST(PageTree, PagesBelowAndAboveAWholeSubtreeAreCountedOnce) {
  constexpr uint64_t kSubtree = uint64_t{128} * 128;
  PageTree tree;
  EXPECT_EQ(tree.Raise(kSubtree + 5, 1), 1u);
  EXPECT_EQ(tree.Raise(kSubtree, kSubtree), kSubtree - 1) << "one page of it was counted";
  EXPECT_EQ(tree.Raise(kSubtree + 127, 2), 0u) << "both are counted with the subtree";
  EXPECT_EQ(tree.Lower(kSubtree + 5, 1), 0u);
  EXPECT_EQ(tree.Lower(kSubtree, kSubtree), kSubtree - 2) << "two remain";
  EXPECT_EQ(tree.Lower(kSubtree + 127, 2), 2u);
}

// A run that filled the tree when it was counted is a part of it when it is no longer counted.
TEST(PageTree, GrowsWithoutLosingCount) {
  const std::vector<uint64_t> sizes = {127, 128, 16383, 16384, 1U << 21, uint64_t{1} << 40};
  PageTree tree;
  uint64_t counted = 0;
  for (const uint64_t size : sizes) {
    EXPECT_EQ(tree.Raise(0, size), size - counted);
    counted = size;
  }
  for (const uint64_t size : {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]}) {
    EXPECT_EQ(tree.Lower(0, size), 0u);
  }
  EXPECT_EQ(tree.Lower(0, sizes[5]), sizes[5]);
}

TEST(PageTree, AgreesWithACounterForEachPage) {
  constexpr uint64_t kPages = uint64_t{3} * 128 * 128;
  const uint64_t seed = Seed();
  std::cout << "RNICD_SEED=" << seed << '\n' << std::flush;
  Random random(seed);
  PageTree tree;
  std::vector<uint32_t> counters(kPages, 0);
  std::vector<std::pair<uint64_t, uint64_t>> held;
  const auto count = [&](uint64_t first, uint64_t pages, int step) {
    uint64_t changed = 0;
    for (uint64_t page = first; page < first + pages; ++page) {
      const uint32_t before = std::exchange(counters[page], counters[page] + static_cast<uint32_t>(step));
      changed += before == 0 || counters[page] == 0 ? 1 : 0;
    }
    return changed;
  };
  for (int round = 0; round < 3000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      std::swap(held[random() % held.size()], held.back());
      const auto [first, pages] = held.back();
      held.pop_back();
      ASSERT_EQ(tree.Lower(first, pages), count(first, pages, -1)) << first << "+" << pages;
    } else {
      // Borders of subtrees are as likely as anything else.
      const uint64_t unit = std::vector<uint64_t>{1, 128, 16384}[random() % 3];
      const uint64_t first = random() % (kPages / unit) * unit;
      const uint64_t pages = 1 + random() % std::min<uint64_t>(kPages - first, 4 * unit);
      held.emplace_back(first, pages);
      ASSERT_EQ(tree.Raise(first, pages), count(first, pages, 1)) << first << "+" << pages;
    }
  }
}

}  // namespace
}  // namespace rnicd::core
