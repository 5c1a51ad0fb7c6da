#include "client/ctl/trials/demo_pages.h"

#include <algorithm>
#include <set>

#include "base/units.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

// Memory that holds the pattern in the pages of this order.
std::vector<std::byte> Scattered(const std::vector<size_t>& order, uint64_t seed) {
  std::vector<std::byte> pattern(order.size() * kNdkPageBytes);
  FillPattern(pattern, seed);
  std::vector<std::byte> memory(pattern.size());
  for (size_t index = 0; index < order.size(); ++index) {
    std::copy_n(pattern.begin() + static_cast<ptrdiff_t>(index * kNdkPageBytes), kNdkPageBytes,
                memory.begin() + static_cast<ptrdiff_t>(order[index] * kNdkPageBytes));
  }
  return memory;
}

TEST(DemoPages, OrderHasEveryPageOnceAndFollowsFromTheSeed) {
  const std::vector<size_t> order = ShuffledOrder(100, 7);
  EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 100u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 99u);
  EXPECT_EQ(ShuffledOrder(100, 7), order);
  EXPECT_NE(ShuffledOrder(100, 8), order);
  EXPECT_EQ(ShuffledOrder(1, 7), std::vector<size_t>{0});
}

TEST(DemoPages, PiecesOfNeighboursAreCounted) {
  EXPECT_EQ(CountPieces({}), 0u);
  EXPECT_EQ(CountPieces(std::vector<size_t>{0, 1, 2}), 1u);
  EXPECT_EQ(CountPieces(std::vector<size_t>{2, 1, 0}), 3u);
  EXPECT_EQ(CountPieces(std::vector<size_t>{3, 4, 0, 1, 2}), 2u);
}

TEST(DemoPages, PatternInTheRightPagesPasses) {
  const std::vector<size_t> order = ShuffledOrder(16, 3);
  EXPECT_TRUE(CheckPattern(Scattered(order, 5), order, 5).ok());
}

TEST(DemoPages, OneWrongByteIsNamed) {
  const std::vector<size_t> order = {2, 0, 1};
  std::vector<std::byte> memory = Scattered(order, 5);
  const std::byte right = memory[kNdkPageBytes + 9];
  memory[kNdkPageBytes + 9] ^= std::byte{0xff};
  const absl::Status status = CheckPattern(memory, order, 5);
  EXPECT_TRUE(std::string(status.message()).starts_with("byte 9 of page 1 is 0x")) << status;
  memory[kNdkPageBytes + 9] = right;
  EXPECT_TRUE(CheckPattern(memory, order, 5).ok());
}

TEST(DemoPages, PagesInTheWrongPlaceAndOtherSeedsAreFound) {
  const std::vector<size_t> order = ShuffledOrder(16, 3);
  const std::vector<std::byte> memory = Scattered(order, 5);
  std::vector<size_t> swapped = order;
  std::swap(swapped[4], swapped[11]);
  EXPECT_FALSE(CheckPattern(memory, swapped, 5).ok());
  EXPECT_FALSE(CheckPattern(memory, order, 6).ok());
  EXPECT_FALSE(CheckPattern(std::vector<std::byte>(memory.size()), order, 5).ok());
}

}  // namespace
}  // namespace rnicd::ctl
