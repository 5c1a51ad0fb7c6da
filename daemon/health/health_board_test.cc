#include "daemon/health/health_board.h"

#include <gtest/gtest.h>

#include <vector>

namespace rnicd::health {
namespace {

TEST(HealthBoard, IsNotReadyBeforeSomebodyKnows) { EXPECT_FALSE(HealthBoard().ready()); }

TEST(HealthBoard, ListenersAreCalledForChangesOnlyAndMayReadTheBoard) {
  HealthBoard board;
  std::vector<bool> heard;
  board.Subscribe([&] { heard.push_back(board.ready()); });
  board.SetCards(false);
  board.SetCards(true);
  board.SetCards(true);
  board.SetCards(false);
  EXPECT_EQ(heard, (std::vector<bool>{true, false}));
}

TEST(HealthBoard, AnUnsubscribedListenerIsNotCalledAndTheOthersStillAre) {
  HealthBoard board;
  int first = 0;
  int second = 0;
  const uint64_t subscription = board.Subscribe([&] { ++first; });
  board.Subscribe([&] { ++second; });
  board.Unsubscribe(subscription);
  board.SetCards(true);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

}  // namespace
}  // namespace rnicd::health
