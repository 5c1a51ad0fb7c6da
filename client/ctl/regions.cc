#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunRegions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::RegionInfo> regions, Admin(AdminSocketDir(line)).Regions());
  output.Result(RegionsText(regions), RegionsJson(regions));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kRegionsCommand = {
    .name = "regions",
    .summary = "list the memory regions of all sessions, without their tokens",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl regions\nrnicctl regions --json\n",
    .run = RunRegions,
};

}  // namespace rnicd::ctl
