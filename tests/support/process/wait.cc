#include "tests/support/process/wait.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/support/process/address_sanitizer.h"

namespace rnicd::test {
namespace {

using SteadyTime = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval{2};

constexpr int kSlownessOfTheBuild = kAddressSanitizer ? 5 : 1;
// A larger value is a mistake.
constexpr long kSlownessOfTheMachineMax = 100;

int SlownessOfTheMachine() {
  const char* const text = std::getenv("RNICD_TEST_SLOWNESS");
  if (text == nullptr || *text == '\0') {
    return 1;
  }
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > kSlownessOfTheMachineMax) {
    std::fprintf(stderr, "RNICD_TEST_SLOWNESS must be 1 to %ld, not \"%s\"\n", kSlownessOfTheMachineMax, text);
    std::exit(1);
  }
  return static_cast<int>(value);
}

}  // namespace

int Slowness() {
  static const int slowness = kSlownessOfTheBuild * SlownessOfTheMachine();
  return slowness;
}

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

}  // namespace rnicd::test
