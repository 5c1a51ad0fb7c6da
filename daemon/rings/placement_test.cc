#include "daemon/rings/placement.h"

#include <gtest/gtest.h>

namespace rnicd::rings {
namespace {

using ring::Processors;
using std::chrono::milliseconds;

constexpr Processors kFirst(0b001);
constexpr Processors kSecond(0b010);
constexpr Processors kThird(0b100);
constexpr Processors kAll(0b111);

TEST(PlacementTest, TheSystemDecidesWhileAProcessorIsFree) {
  Placement placement(2, kAll);
  EXPECT_EQ(placement.Choose(0, kFirst, {}), kAll);
  EXPECT_EQ(placement.Choose(1, kSecond, {}), kAll);
}

TEST(PlacementTest, AThreadStaysWithItsClientsOnceAllAreBusy) {
  Placement placement(2, kAll);
  placement.Choose(0, kFirst, {});
  EXPECT_EQ(placement.Choose(1, kSecond | kThird, {}), kSecond | kThird);
  EXPECT_EQ(placement.Choose(0, kFirst, {}), kFirst);
}

TEST(PlacementTest, WhatAThreadSawBeforeItSleptIsForgotten) {
  Placement placement(2, kAll);
  placement.Choose(0, kFirst, {});
  EXPECT_EQ(placement.Choose(1, kSecond | kThird, Instant() + milliseconds(20)), kAll);
}

// A client of a container may run where the daemon may not, or say so.
TEST(PlacementTest, ProcessorsThatTheDaemonMayNotUseDoNotCount) {
  Placement placement(2, kFirst | kSecond);
  EXPECT_EQ(placement.Choose(0, kThird, {}), kFirst | kSecond);
  EXPECT_EQ(placement.Choose(1, kFirst | kSecond, {}), kFirst | kSecond);
  EXPECT_EQ(placement.Choose(0, kThird, {}), kFirst | kSecond);
  EXPECT_EQ(placement.Choose(0, kFirst | kThird, {}), kFirst);
}

TEST(PlacementTest, AThreadMovesAgainAfterAWhile) {
  Placement placement(1);
  ThreadPlace place(placement, 0);
  EXPECT_TRUE(place.MayMove({}));
  place.Move({}, {});
  EXPECT_FALSE(place.MayMove(Instant() + milliseconds(9)));
  EXPECT_TRUE(place.MayMove(Instant() + milliseconds(10)));
}

// Two clients that talk to each other: one elsewhere, and one that waits for this processor to read.
TEST(PlacementTest, AProcessorIsAClientsForAMillisecond) {
  Placement placement(1);
  ThreadPlace place(placement, 0);
  EXPECT_FALSE(place.IsAClients({}));
  place.ClientIsHere({});
  EXPECT_TRUE(place.IsAClients(Instant()));
  EXPECT_FALSE(place.IsAClients(Instant() + milliseconds(1)));
}

}  // namespace
}  // namespace rnicd::rings
