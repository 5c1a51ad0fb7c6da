#pragma once

#include <chrono>
#include <functional>

namespace rnicd::test {

// How much slower than a release build on real hardware this run may be: sanitizers cost a few times, and an emulated
// machine says what it costs in RNICD_TEST_SLOWNESS (a whole number from 1 on; default 1). 1 means: not slower.
int Slowness();
inline const int kSlowness = Slowness();

// How long a test waits for something that must happen. Only a failing test waits so long.
inline const std::chrono::milliseconds kPatience{10'000 * kSlowness};

// Long enough that a test can make a handful of calls while something slow is under way: what slow cards and slow wires
// are told to take.
inline const std::chrono::milliseconds kHandfulOfCalls{kSlowness > 1 ? 600 : 200};

// True as soon as the condition holds; asks every few milliseconds, at most so long, and once more at the end.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kPatience);

// True when the condition held every time it was asked during that time.
bool Throughout(const std::function<bool()>& condition, std::chrono::milliseconds duration);

}  // namespace rnicd::test
