#pragma once

#include <chrono>
#include <functional>

namespace rnicd::test {

// Factor by which this run may be slower than a release build on real hardware. Sanitizers multiply it; an emulated
// machine sets its own factor in RNICD_TEST_SLOWNESS (an integer of at least 1; default 1). 1 means not slower.
int Slowness();
inline const int kSlowness = Slowness();

// Timeout for something that must happen. Only a failing test waits this long.
inline const std::chrono::milliseconds kTimeout{10'000 * kSlowness};

// Returns true as soon as the condition holds. Polls every few milliseconds for at most `limit`, and once more at the
// end.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kTimeout);

}  // namespace rnicd::test
