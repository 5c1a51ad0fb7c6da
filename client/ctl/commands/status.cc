#include <array>

#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunStatus(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, Admin(AdminSocketDir(line)).Status());
  output.Result(StatusText(status), StatusJson(status));
  return absl::OkStatus();
}

constexpr std::array kHealthOptions = {
    OptionSpec{"--live", "", "check the daemon only, whatever its adapters do", ""},
};

absl::Status RunHealth(const CommandLine& line, Output& output) {
  Admin admin(AdminSocketDir(line));
  if (line.Has("--live")) {
    RNICD_ASSIGN_OR_RETURN(const bool live, admin.Live());
    output.Result(LiveText(live), LiveJson(live));
    return live ? absl::OkStatus() : absl::UnavailableError("the daemon hangs; /healthz and its log say where");
  }
  RNICD_ASSIGN_OR_RETURN(const bool ready, admin.Ready());
  output.Result(HealthText(ready), HealthJson(ready));
  return ready ? absl::OkStatus()
               : absl::UnavailableError(
                     "no adapter can be used, or the daemon does not serve; /readyz and its log say why");
}

}  // namespace

constinit const CommandSpec kStatusCommand = {
    .name = "status",
    .summary = "show the daemon's state and the node's totals",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl status\nrnicctl status --json\n",
    .run = RunStatus,
};

constinit const CommandSpec kHealthCommand = {
    .name = "health",
    .summary = "check whether workloads are served",
    .description =
        "Calls grpc.health.v1.Health. The exit code is 0 when all threads that serve workloads have answered within 5\n"
        "seconds, and an adapter can be used: the daemon's last probe registered memory with it and released it in\n"
        "time. Otherwise it is 1. With --live adapters do not matter: a restart repairs none, and ends all sessions.\n"
        "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl health\nrnicctl health --live\nrnicctl health --json\n",
    .options = kHealthOptions,
    .run = RunHealth,
};

}  // namespace rnicd::ctl
