#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/sandbox/landlock.h"

namespace rnicd::sandbox {

// Treatment of system calls that are not on the list.
enum class SystemCallFilter : uint8_t {
  // The kernel kills the process by SIGSYS and logs the call.
  kEnforce,
  // The call is executed, and logged by the kernel. No protection; for finding out which calls a machine needs.
  kLog,
  // No filter is loaded.
  kOff,
};

// "enforce", "log", "off"; empty for any other word.
std::optional<SystemCallFilter> SystemCallFilterFromName(std::string_view name);

struct SandboxOptions {
  // Keeps CAP_IPC_LOCK, which lifts the memlock limit on memory that a card pins, if the process has it.
  bool keep_ipc_lock = false;
  SystemCallFilter filter = SystemCallFilter::kEnforce;
  // Lets a daemon that serves ask the kernel's netlink for cards, as libibverbs does each time that one is opened.
  bool looks_for_cards = false;
  // Paths that the process may use from now on; absent: no restriction of paths.
  std::optional<PathRules> paths;
};

// What EnterSandbox could do on this kernel.
struct Confinement {
  // Version of Landlock that restricts the paths; 0 when they are not restricted.
  int landlock_version = 0;
};

// Drops privileges that this process will never need: all capabilities but CAP_IPC_LOCK, the ways to regain them, core
// dumps, paths without a rule, and the system calls that are not on the list. Irreversible. Privileges that the process
// does not have need not be dropped, so this also succeeds without root.
// Threads: must be called once, while the process has one thread; threads started later inherit everything. A second
// call ends the process, because the calls it makes are not on the list.
// Errors:  kFailedPrecondition when there are other threads; kInternal with the step and its errno. The process is then
// in a state in between and must end.
// Source:  capabilities(7), seccomp(2), landlock(7), PR_SET_NO_NEW_PRIVS of prctl(2).
absl::StatusOr<Confinement> EnterSandbox(const SandboxOptions& options);

// Takes away the system calls that only the start needs, and uses of others that the daemon never has: new sockets,
// addresses to send to, code, files that run as another user (serving.h). Irreversible.
// Threads: must be called once, after EnterSandbox with the same options, from any thread; it holds for all.
// Errors:  kInternal with the step and its errno. The process must then end.
// Source:  seccomp(2).
absl::Status NarrowSandbox(const SandboxOptions& options);

}  // namespace rnicd::sandbox
