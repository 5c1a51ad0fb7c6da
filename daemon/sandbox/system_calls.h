#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace rnicd::sandbox {

// Names are those of the kernel's tables. A name that is unknown to the library or missing on this architecture is
// skipped: each architecture has its own set.

// Calls that are allowed with any arguments.
struct CallGroup {
  const char* needed_for;
  std::span<const char* const> calls;
};

// An argument and the bits of it that must have this value; or, if `differs`, must not have it, and then the mask has
// all bits, because the library compares so only as a whole.
struct ArgumentBits {
  unsigned index;
  uint64_t mask;
  uint64_t value;
  bool differs = false;
};

// For an int, the kernel reads the lower half only.
constexpr ArgumentBits Is(unsigned index, uint64_t value) {
  constexpr uint64_t kIntMask = 0xffffffff;
  return {.index = index, .mask = kIntMask, .value = value & kIntMask};
}
constexpr ArgumentBits Lacks(unsigned index, uint64_t bits) { return {.index = index, .mask = bits, .value = 0}; }
constexpr ArgumentBits Has(unsigned index, uint64_t bits) { return {.index = index, .mask = bits, .value = bits}; }
constexpr ArgumentBits IsNotNull(unsigned index) {
  return {.index = index, .mask = ~uint64_t{0}, .value = 0, .differs = true};
}

// A call that is allowed when all its conditions hold. Several rules for one call are alternatives.
struct CallRule {
  const char* call;
  std::vector<ArgumentBits> conditions;
};

// A call that is not executed but returns an errno, because the library that makes it continues without it.
struct ErrnoCall {
  const char* call;
  int error_number;
};

// True in a build with a sanitizer, which needs more calls than the daemon.
bool BuiltWithSanitizer();

std::span<const CallGroup> AllowedCalls();
// `self`: ID of the process that the rules are for.
std::vector<CallRule> AllowedByArguments(pid_t self);
std::span<const ErrnoCall> ErrnoCalls();

// Calls [kFirstNewerCall, kNewerCallsEnd) return ENOSYS. They were added after Linux 5.17, when the list was made, or
// will be: a C library that tries one falls back on older calls. From 424 on a call has the same number on all
// architectures.
inline constexpr int kFirstNewerCall = 451;
inline constexpr int kNewerCallsEnd = 548;

// Calls allowed by number, because the library has no names for them.
std::span<const int> AllowedNumbers();

}  // namespace rnicd::sandbox
