#include "daemon/sandbox/sandbox.h"

#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/sandbox/capabilities.h"
#include "daemon/sandbox/dumps.h"
#include "daemon/sandbox/failed_step.h"
#include "daemon/sandbox/system_call_filter.h"

namespace rnicd::sandbox {
namespace {

absl::Status RequireOneThread() {
  std::error_code error;
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  if (error) {
    return FailedStep("cannot count the threads in /proc/self/task", error.value());
  }
  const auto count = std::distance(begin(threads), end(threads));
  return count == 1 ? absl::OkStatus()
                    : absl::FailedPreconditionError(absl::StrCat("sandbox: there are ", count,
                                                                 " threads already, and all but one would keep "
                                                                 "their privileges"));
}

OtherCalls Treatment(SystemCallFilter filter) {
  return filter == SystemCallFilter::kLog ? OtherCalls::kAreLogged : OtherCalls::kKillTheProcess;
}

}  // namespace

std::optional<SystemCallFilter> SystemCallFilterFromName(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, SystemCallFilter>, 3> kNames = {
      {{"enforce", SystemCallFilter::kEnforce}, {"log", SystemCallFilter::kLog}, {"off", SystemCallFilter::kOff}}};
  for (const auto& [known, filter] : kNames) {
    if (known == name) {
      return filter;
    }
  }
  return std::nullopt;
}

absl::StatusOr<Confinement> EnterSandbox(const SandboxOptions& options) {
  RNICD_RETURN_IF_ERROR(RequireOneThread());
  RNICD_RETURN_IF_ERROR(DropCapabilities(options.keep_ipc_lock));
  RNICD_RETURN_IF_ERROR(ForbidDumps());
  // Also required to load a filter without capabilities.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return FailedStep("cannot set no_new_privs", errno);
  }
  Confinement confinement;
  if (options.paths.has_value()) {
    RNICD_ASSIGN_OR_RETURN(confinement.landlock_version, RestrictPaths(*options.paths));
  }
  if (options.filter != SystemCallFilter::kOff) {
    RNICD_RETURN_IF_ERROR(LoadSystemCallFilter(Treatment(options.filter)));
  }
  return confinement;
}

absl::Status NarrowSandbox(const SandboxOptions& options) {
  return options.filter == SystemCallFilter::kOff
             ? absl::OkStatus()
             : LoadServingFilter(Treatment(options.filter), options.looks_for_cards);
}

}  // namespace rnicd::sandbox
