#include "daemon/sandbox/dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "daemon/sandbox/failed_step.h"

namespace rnicd::sandbox {

absl::Status ForbidDumps() {
  constexpr rlimit kNone = {.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_CORE, &kNone) != 0) {
    return FailedStep("cannot set the limit of core dumps", errno);
  }
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? absl::OkStatus() : FailedStep("cannot forbid dumps", errno);
}

}  // namespace rnicd::sandbox
