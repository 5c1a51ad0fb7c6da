#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunTenants(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::TenantInfo> tenants, Admin(AdminSocketDir(line)).Tenants());
  output.Result(TenantsText(tenants), TenantsJson(tenants));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kTenantsCommand = {
    .name = "tenants",
    .summary = "list the tenants, what each holds over all its sessions, and its limits",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. Lists tenants with a connection, a session or a\n"
        "grant. A bar shows how much of a limit is used; no bar means no limit.\n",
    .examples = "rnicctl tenants\nrnicctl tenants --json\n",
    .run = RunTenants,
};

}  // namespace rnicd::ctl
