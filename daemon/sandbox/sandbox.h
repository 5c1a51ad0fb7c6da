#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace rnicd::sandbox {

// What becomes of a system call that is not on the list.
enum class SystemCallFilter : uint8_t {
  // The kernel ends the process by SIGSYS and notes the call in its log.
  kEnforce,
  // The call is carried out and noted in the kernel's log. Nothing is defended; for finding out what a machine needs.
  kLog,
  // There is no filter.
  kOff,
};

// "enforce", "log", "off"; nothing for any other word.
std::optional<SystemCallFilter> SystemCallFilterFromName(std::string_view name);

struct SandboxOptions {
  // Keeps CAP_IPC_LOCK, which lifts the memlock limit of what a card pins, if the process has it.
  bool keep_ipc_lock = false;
  SystemCallFilter filter = SystemCallFilter::kEnforce;
};

// Gives up what this process will never need: all capabilities but CAP_IPC_LOCK, the ways to get them back, and the
// system calls that are not on the list. For good: nothing can undo it.
// What a process does not have it need not give up, so this also passes without root.
// Threads: must be called once, while the process has one thread; those that it starts later inherit everything. A
//   second call ends the process, because the calls that this makes are not on the list.
// Errors:  kFailedPrecondition when there are other threads; kInternal with the step and its errno. The process is then
//   somewhere in between and must end.
// Source:  capabilities(7), seccomp(2), PR_SET_NO_NEW_PRIVS of prctl(2).
absl::Status EnterSandbox(const SandboxOptions& options);

}  // namespace rnicd::sandbox
