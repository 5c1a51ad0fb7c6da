#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunHealth(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const bool ready, Admin(AdminSocketDir(line)).Ready());
  output.Result(HealthText(ready), HealthJson(ready));
  return ready ? absl::OkStatus() : absl::UnavailableError("no adapter can be used; the daemon's log says why");
}

}  // namespace

constinit const CommandSpec kHealthCommand = {
    .name = "health",
    .summary = "check whether an adapter can be used",
    .description =
        "Calls grpc.health.v1.Health, which returns the result of the daemon's last probe of each adapter: memory was\n"
        "registered and released in time, or not. One working adapter is enough. The exit code is 1 when none does.\n"
        "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl health\nrnicctl health --json\n",
    .run = RunHealth,
};

}  // namespace rnicd::ctl
