#include <array>
#include <vector>

#include "base/status.h"
#include "client/admin/admin.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunStatus(const CommandLine& line, Output& output) {
  Generations generations(AdminSocketDir(line));
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, generations.Status());
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::GetStatusResponse> older, generations.OlderStatuses());
  output.Result(StatusText(status, older), StatusJson(status, older));
  return absl::OkStatus();
}

constexpr std::array kHealthOptions = {
    OptionSpec{"--live", "", "check the daemon only, whatever its adapters do", ""},
    OptionSpec{"--same-container", "", "only the daemon that is in the control groups of rnicctl", ""},
};

absl::StatusOr<bool> AskHealth(const CommandLine& line) {
  const bool live = line.Has("--live");
  if (line.Has("--same-container")) {
    Generations generations(AdminSocketDir(line));
    return live ? generations.LiveInThisContainer() : generations.ReadyInThisContainer();
  }
  Admin admin(AdminSocketDir(line));
  return live ? admin.Live() : admin.Ready();
}

absl::Status RunHealth(const CommandLine& line, Output& output) {
  if (line.Has("--live")) {
    RNICD_ASSIGN_OR_RETURN(const bool live, AskHealth(line));
    output.Result(LiveText(live), LiveJson(live));
    return live ? absl::OkStatus() : absl::UnavailableError("the daemon hangs; /healthz and its log say where");
  }
  RNICD_ASSIGN_OR_RETURN(const bool ready, AskHealth(line));
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
        "With --same-container it is 1 while another container's daemon takes the connections; with --live as well, "
        "the\n"
        "container's own is asked, of whatever generation. Uses the admin socket, which belongs to the daemon's "
        "user.\n",
    .examples = "rnicctl health\nrnicctl health --live\nrnicctl health --json\n",
    .options = kHealthOptions,
    .run = RunHealth,
};

}  // namespace rnicd::ctl
