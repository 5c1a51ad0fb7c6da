#include "client/kubernetes/resources/preference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Ids = std::vector<std::string>;

std::string IdOf(int node, int number) { return "numa" + std::to_string(node) + "-000" + std::to_string(number); }

// The first `counts[n]` devices of each node n.
Ids Available(const std::vector<int>& counts) {
  Ids ids;
  for (int node = 0; node < static_cast<int>(counts.size()); ++node) {
    for (int number = 0; number < counts[static_cast<size_t>(node)]; ++number) {
      ids.push_back(IdOf(node, number));
    }
  }
  return ids;
}

class PreferDevicesTest : public testing::Test {
 protected:
  PreferDevicesTest() {
    for (int node = 0; node < 4; ++node) {
      for (int number = 0; number < 8; ++number) {
        devices_.push_back(Device{.id = IdOf(node, number), .numa_node = node, .healthy = true});
      }
    }
  }

  Ids Prefer(const Ids& available, const Ids& must_include, size_t size) const {
    return PreferDevices(devices_,
                         {.available = available, .must_include = must_include, .avoid = avoid_, .size = size});
  }

  std::vector<Device> devices_;
  std::set<std::string> avoid_;
};

TEST_F(PreferDevicesTest, StaysOnOneNumaNode) {
  EXPECT_THAT(Prefer(Available({2, 3}), {}, 3), ElementsAre("numa1-0000", "numa1-0001", "numa1-0002"));
}

TEST_F(PreferDevicesTest, TakesTheNodeThatTheFewestAreLeftOf) {
  EXPECT_THAT(Prefer(Available({8, 1, 3, 4}), {}, 2), ElementsAre("numa2-0000", "numa2-0001"));
}

TEST_F(PreferDevicesTest, TakesTheLowerOfEqualNodes) {
  EXPECT_THAT(Prefer(Available({0, 3, 3}), {}, 1), ElementsAre("numa1-0000"));
}

TEST_F(PreferDevicesTest, TakesTheLowestIdsOfANode) {
  EXPECT_THAT(Prefer({"numa0-0007", "numa0-0002", "numa0-0005"}, {}, 2), ElementsAre("numa0-0002", "numa0-0005"));
}

TEST_F(PreferDevicesTest, TakesTheNodeOfWhatMustBeIncludedThoughAnotherIsFuller) {
  EXPECT_THAT(Prefer(Available({8, 2}), {"numa0-0003"}, 2), ElementsAre("numa0-0003", "numa0-0000"));
}

TEST_F(PreferDevicesTest, UsesUpTheNodeOfWhatMustBeIncludedBeforeAnother) {
  EXPECT_THAT(Prefer(Available({2, 8}), {"numa0-0000"}, 3), ElementsAre("numa0-0000", "numa0-0001", "numa1-0000"));
}

TEST_F(PreferDevicesTest, WhatMustBeIncludedMayBeOfSeveralNodes) {
  EXPECT_THAT(Prefer(Available({4, 2, 2}), {"numa2-0001", "numa1-0001"}, 3),
              ElementsAre("numa2-0001", "numa1-0001", "numa1-0000"));
}

// Nodes of 4, 3 and 3 have six together; the four and one three do, where 3 and 3 and a third node would not.
TEST_F(PreferDevicesTest, SpansAsFewNodesAsPossible) {
  EXPECT_THAT(Prefer(Available({3, 4, 3}), {}, 6),
              ElementsAre("numa1-0000", "numa1-0001", "numa1-0002", "numa1-0003", "numa0-0000", "numa0-0001"));
}

// The rest of one comes from the smallest node, so that the larger one stays whole.
TEST_F(PreferDevicesTest, TheRestComesFromTheNodeThatTheFewestAreLeftOf) {
  EXPECT_THAT(Prefer(Available({3, 4, 1}), {}, 5),
              ElementsAre("numa1-0000", "numa1-0001", "numa1-0002", "numa1-0003", "numa2-0000"));
}

TEST_F(PreferDevicesTest, EachIdIsTakenOnce) {
  EXPECT_THAT(Prefer({"numa0-0000", "numa0-0000", "numa0-0001"}, {"numa0-0001", "numa0-0001"}, 3),
              ElementsAre("numa0-0001", "numa0-0000"));
}

TEST_F(PreferDevicesTest, UnknownIdsCountAsWithoutANode) {
  EXPECT_THAT(Prefer({"old-1", "numa0-0000", "old-0"}, {}, 2), ElementsAre("old-0", "old-1"));
}

TEST_F(PreferDevicesTest, FewerAreThereThanWanted) {
  EXPECT_THAT(Prefer(Available({1, 1}), {}, 9), ElementsAre("numa0-0000", "numa1-0000"));
  EXPECT_THAT(Prefer({}, {}, 1), IsEmpty());
}

TEST_F(PreferDevicesTest, NeverMoreThanWanted) {
  EXPECT_THAT(Prefer(Available({4}), {"numa0-0001"}, 1), ElementsAre("numa0-0001"));
  EXPECT_THAT(Prefer(Available({4}), {"numa0-0001", "numa0-0002"}, 1), ElementsAre("numa0-0001"));
  EXPECT_THAT(Prefer(Available({4}), {"numa0-0001"}, 0), IsEmpty());
}

TEST_F(PreferDevicesTest, TakesWhatIsToBeAvoidedOnlyWhenNothingElseIsLeft) {
  avoid_ = {"numa0-0000", "numa0-0001"};
  EXPECT_THAT(Prefer(Available({4}), {}, 2), ElementsAre("numa0-0002", "numa0-0003"));
  EXPECT_THAT(Prefer(Available({4}), {}, 3), ElementsAre("numa0-0002", "numa0-0003", "numa0-0000"));
}

TEST_F(PreferDevicesTest, UsesAnotherNodeRatherThanWhatIsToBeAvoided) {
  avoid_ = {"numa0-0000", "numa0-0001"};
  EXPECT_THAT(Prefer(Available({3, 8}), {}, 2), ElementsAre("numa1-0000", "numa1-0001"));
  EXPECT_THAT(Prefer(Available({2, 2}), {"numa0-0001"}, 2), ElementsAre("numa0-0001", "numa1-0000"))
      << "what must be included is, and its node is no reason to take its neighbour";
  EXPECT_THAT(Prefer(Available({3, 1}), {}, 2), ElementsAre("numa0-0002", "numa1-0000"));
}

}  // namespace
}  // namespace rnicd::kubernetes
