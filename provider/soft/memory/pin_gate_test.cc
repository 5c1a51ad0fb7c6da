#include "provider/soft/memory/pin_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace rnicd::provider {
namespace {

TEST(PinGate, LetsManyInUntilItIsClosed) {
  PinGate gate;
  EXPECT_TRUE(gate.Enter());
  EXPECT_TRUE(gate.Enter());
  gate.Leave();
  gate.Leave();
  EXPECT_TRUE(gate.Enter()) << "it closes by itself when the last one leaves";
  gate.Leave();
  gate.Close();
  EXPECT_FALSE(gate.Enter());
}

TEST(PinGate, OnlyTheFirstWhoClosesIsToldSo) {
  PinGate gate;
  EXPECT_TRUE(gate.Close());
  EXPECT_FALSE(gate.Close());
  EXPECT_FALSE(gate.Enter());
}

// Once Enter fails, the closers are waiting; neither may return while a transfer is inside.
TEST(PinGate, EveryCloseWaitsForThoseInside) {
  PinGate gate;
  ASSERT_TRUE(gate.Enter());
  ASSERT_TRUE(gate.Enter());
  std::atomic<bool> empty{false};
  std::vector<std::thread> closers;
  for (int closer = 0; closer < 2; ++closer) {
    closers.emplace_back([&] {
      gate.Close();
      EXPECT_TRUE(empty) << "somebody was still inside";
    });
  }
  while (gate.Enter()) {
    gate.Leave();
    std::this_thread::yield();
  }
  gate.Leave();
  EXPECT_FALSE(gate.Enter());
  empty = true;
  gate.Leave();
  for (std::thread& closer : closers) {
    closer.join();
  }
}

TEST(PinGate, WhoEntersAndLeavesMeanwhileDoesNotKeepItOpen) {
  PinGate gate;
  std::atomic<int> inside{0};
  std::atomic<int> visits{0};
  std::vector<std::thread> visitors;
  for (int visitor = 0; visitor < 3; ++visitor) {
    visitors.emplace_back([&] {
      while (gate.Enter()) {
        ++inside;
        ++visits;
        --inside;
        gate.Leave();
      }
    });
  }
  while (visits < 1000) {
    std::this_thread::yield();
  }
  gate.Close();
  EXPECT_EQ(inside, 0);
  for (std::thread& visitor : visitors) {
    visitor.join();
  }
}

}  // namespace
}  // namespace rnicd::provider
