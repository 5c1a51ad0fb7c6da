#include "base/system/abandonable_thread.h"

#include <gtest/gtest.h>

#include <memory>

namespace rnicd {
namespace {

constexpr std::chrono::seconds kLong{60};

TEST(AbandonableThread, WhatReturnsIsJoined) {
  bool ran = false;
  AbandonableThread thread([&ran] { ran = true; });
  EXPECT_TRUE(thread.EndBy(std::chrono::steady_clock::now() + kLong));
  EXPECT_TRUE(ran);
}

TEST(AbandonableThread, WhatDoesNotReturnIsLeftBehindWithWhatItOwns) {
  std::promise<void> gate;
  std::promise<int> end;
  std::future<int> ended = end.get_future();
  {
    AbandonableThread thread([opened = gate.get_future().share(), owned = std::make_shared<int>(5), &end] {
      opened.wait();
      end.set_value(*owned);
    });
    EXPECT_FALSE(thread.EndBy(std::chrono::steady_clock::now()));
  }
  gate.set_value();
  ASSERT_EQ(ended.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(ended.get(), 5);
}

TEST(ResultBy, IsWhatTheCallReturnsOrNothing) {
  const std::function<int()> answers = [] { return 7; };
  EXPECT_EQ(ResultBy(std::chrono::steady_clock::now() + kLong, answers), 7);
  std::promise<void> gate;
  const std::function<int()> hangs = [opened = gate.get_future().share()] {
    opened.wait();
    return 7;
  };
  EXPECT_EQ(ResultBy(std::chrono::steady_clock::now(), hangs), std::nullopt);
  gate.set_value();
}

}  // namespace
}  // namespace rnicd
