#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace rnicd::sandbox {

// Names are those of the kernel's tables. One that the library does not know, or this architecture has not, is passed
// over: another architecture has another set of them.

// Calls that are let through whatever their arguments.
struct CallGroup {
  const char* needed_for;
  std::span<const char* const> calls;
};

// An argument and the bits of it that must have this value.
struct ArgumentBits {
  unsigned index;
  uint64_t mask;
  uint64_t value;
};

// A call that is let through when all its conditions hold. Several rules for one call are alternatives.
struct CallRule {
  const char* call;
  std::vector<ArgumentBits> conditions;
};

// A call that is not carried out, but answered with an errno, because a library that is told no goes on without it.
struct AnsweredCall {
  const char* call;
  int error_number;
};

// True in a build with a sanitizer, which needs more calls than the daemon.
bool BuiltWithSanitizer();

std::span<const CallGroup> AllowedCalls();
// `self` is the process that the rules are for.
std::vector<CallRule> AllowedByArguments(pid_t self);
std::span<const AnsweredCall> AnsweredCalls();

// Calls [kFirstNewerCall, kNewerCallsEnd) are answered with ENOSYS. They came after Linux 5.17, when the list was made,
// or will come: a C library that tries one falls back on what it did before. From 424 on a call has the same number on
// all architectures.
inline constexpr int kFirstNewerCall = 451;
inline constexpr int kNewerCallsEnd = 548;

// Let through by their numbers, as the library has no names for them.
std::span<const int> AllowedNumbers();

}  // namespace rnicd::sandbox
