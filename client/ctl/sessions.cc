#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunSessions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::SessionInfo> sessions, Admin(AdminSocketDir(line)).Sessions());
  output.Result(SessionsText(sessions), SessionsJson(sessions));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kSessionsCommand = {
    .name = "sessions",
    .summary = "list the sessions of all processes and what each holds",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl sessions\nrnicctl sessions --json\n",
    .run = RunSessions,
};

}  // namespace rnicd::ctl
