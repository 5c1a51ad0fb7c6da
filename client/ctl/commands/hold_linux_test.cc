#include "client/ctl/commands/hold.h"

#include <csignal>
#include <thread>

#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

using std::chrono::milliseconds;

TEST(Hold, EndsWhenItsTimeIsOver) {
  Hold hold;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(hold.Wait({.duration = milliseconds(50)}).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(50));
  EXPECT_TRUE(hold.Wait({}).ok());
}

TEST(Hold, SignalBeforeOrDuringTheHoldEndsItAndDoesNotKill) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Hold hold;
    raise(signal);
    EXPECT_TRUE(hold.Wait({.forever = true}).ok());
  }
}

TEST(Hold, PauseForgetsTheEndOfTheSessionAndNoSignal) {
  Hold hold;
  hold.OnSessionEnded(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  EXPECT_TRUE(hold.Pause(milliseconds(1)));
  EXPECT_TRUE(hold.Wait({.duration = milliseconds(1)}).ok());
  raise(SIGTERM);
  EXPECT_FALSE(hold.Pause(std::chrono::hours(1)));
  EXPECT_TRUE(hold.Wait({.forever = true}).ok()) << "the signal counts until the end";
}

TEST(Hold, EndOfTheSessionEndsItWithTheReason) {
  Hold hold;
  std::thread daemon([&hold] { hold.OnSessionEnded(MakeError(ErrorReason::SESSION_ENDING, "evicted")); });
  EXPECT_TRUE(FailedWith(hold.Wait({.forever = true}), ErrorReason::SESSION_ENDING));
  daemon.join();
}

}  // namespace
}  // namespace rnicd::ctl
