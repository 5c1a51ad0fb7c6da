#include "client/kubernetes/resources/device_board.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;

// Only a failing test waits this long.
constexpr milliseconds kLong{60'000};

std::vector<Device> One(bool healthy) { return {Device{.id = "any-0000", .healthy = healthy}}; }

TEST(DeviceBoard, IsAtVersionZeroBeforeTheFirstSet) {
  DeviceBoard board;
  EXPECT_EQ(board.Get().version, 0u);
  board.Set({});
  EXPECT_EQ(board.Get().version, 1u);
}

TEST(DeviceBoard, GrowsWithChangesAndOnlyThen) {
  DeviceBoard board;
  board.Set(One(true));
  board.Set(One(true));
  EXPECT_EQ(board.Get().version, 1u);
  board.Set(One(false));
  EXPECT_EQ(board.Get().version, 2u);
  EXPECT_EQ(board.Get().devices, One(false));
}

TEST(DeviceBoard, AnswersAtOnceWhenTheVersionIsAnother) {
  DeviceBoard board;
  board.Set(One(true));
  EXPECT_EQ(board.WaitForChange(0, kLong).version, 1u);
}

TEST(DeviceBoard, WakesAWaiterOnAChange) {
  DeviceBoard board;
  board.Set(One(true));
  std::thread setter([&board] { board.Set(One(false)); });
  const DeviceBoard::View view = board.WaitForChange(1, kLong);
  EXPECT_EQ(view.version, 2u);
  EXPECT_EQ(view.devices, One(false));
  setter.join();
}

TEST(DeviceBoard, GivesUpWhenTheTimeoutPasses) {
  DeviceBoard board;
  EXPECT_EQ(board.WaitForChange(0, milliseconds(1)).version, 0u);
}

TEST(DeviceBoard, CloseWakesAllNowAndFromNowOn) {
  DeviceBoard board;
  std::thread closer([&board] { board.Close(); });
  EXPECT_TRUE(board.WaitForChange(0, kLong).closed);
  closer.join();
  EXPECT_TRUE(board.WaitForChange(0, kLong).closed);
}

TEST(DeviceBoard, NudgeWakesAnInterruptedWaiter) {
  DeviceBoard board;
  std::atomic<bool> interrupted{false};
  std::thread nudger([&] {
    interrupted.store(true);
    board.Nudge();
  });
  const auto begin = std::chrono::steady_clock::now();
  board.WaitForChange(0, kLong, &interrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong);
  nudger.join();
}

}  // namespace
}  // namespace rnicd::kubernetes
