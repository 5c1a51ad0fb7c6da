#include <windows.h>

#include "base/system/this_thread.h"

namespace rnicd {

void LowerPriority() { (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE); }

// Source: GetThreadTimes.
// Only debuggers show one.
void NameThread(const char* /*name*/) {}

std::chrono::nanoseconds ThreadTime() {
  // A FILETIME counts 100 nanoseconds.
  using Ticks = std::chrono::duration<uint64_t, std::ratio<1, 10'000'000>>;
  FILETIME started;
  FILETIME exited;
  FILETIME kernel;
  FILETIME user;
  if (GetThreadTimes(GetCurrentThread(), &started, &exited, &kernel, &user) == 0) {
    return {};
  }
  const auto ticks = [](const FILETIME& time) {
    return Ticks((uint64_t{time.dwHighDateTime} << 32) | time.dwLowDateTime);
  };
  return ticks(kernel) + ticks(user);
}

}  // namespace rnicd
