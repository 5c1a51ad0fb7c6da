#include "daemon/door/places.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rnicd::door {
namespace {

TEST(Places, AreLimitedForEachOwnerAndForAll) {
  const auto places = std::make_shared<Places>(3, 2);
  const auto first = places->Take("a");
  auto second = places->Take("a");
  EXPECT_EQ(places->Take("a"), nullptr);
  EXPECT_FALSE(places->IsFull());
  const auto third = places->Take("b");
  EXPECT_TRUE(places->IsFull());
  EXPECT_EQ(places->Take("c"), nullptr);
  second.reset();
  EXPECT_FALSE(places->IsFull());
  EXPECT_NE(places->Take("c"), nullptr);
}

TEST(Places, ZeroIsNoLimit) {
  const auto places = std::make_shared<Places>(0, 0);
  std::vector<std::shared_ptr<void>> taken;
  for (int count = 0; count < 100; ++count) {
    taken.push_back(places->Take("a"));
    EXPECT_NE(taken.back(), nullptr);
  }
  EXPECT_FALSE(places->IsFull());
}

TEST(Places, OneMayOutliveTheCount) {
  auto places = std::make_shared<Places>(1, 1);
  const auto place = places->Take("a");
  places.reset();
  EXPECT_NE(place, nullptr);
}

}  // namespace
}  // namespace rnicd::door
