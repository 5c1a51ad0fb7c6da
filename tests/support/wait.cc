#include "tests/support/wait.h"

#include <thread>

namespace rnicd::test {
namespace {

using SteadyTime = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval{2};

}  // namespace

bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = SteadyTime::now() + limit;
  while (SteadyTime::now() < deadline) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return condition();
}

bool Throughout(const std::function<bool()>& condition, std::chrono::milliseconds duration) {
  const auto deadline = SteadyTime::now() + duration;
  while (SteadyTime::now() < deadline) {
    if (!condition()) {
      return false;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return condition();
}

}  // namespace rnicd::test
