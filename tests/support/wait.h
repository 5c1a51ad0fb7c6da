#pragma once

#include <chrono>
#include <functional>

namespace rnicd::test {

// How much slower than a release build this build may be: sanitizers cost a few times.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowness = 5;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr int kSlowness = 5;
#else
inline constexpr int kSlowness = 1;
#endif
#else
inline constexpr int kSlowness = 1;
#endif

// How long a test waits for something that must happen. Only a failing test waits so long.
inline constexpr std::chrono::milliseconds kPatience{10'000 * kSlowness};

// True as soon as the condition holds; asks every few milliseconds, at most so long, and once more at the end.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = kPatience);

// True when the condition held every time it was asked during that time.
bool Throughout(const std::function<bool()>& condition, std::chrono::milliseconds duration);

}  // namespace rnicd::test
