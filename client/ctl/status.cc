#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunStatus(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, Admin(AdminSocketDir(line)).Status());
  output.Result(StatusText(status), StatusJson(status));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kStatusCommand = {
    .name = "status",
    .summary = "show the daemon's state and the node's totals",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl status\nrnicctl status --json\n",
    .run = RunStatus,
};

}  // namespace rnicd::ctl
