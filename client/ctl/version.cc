#include "client/ctl/command_rows.h"
#include "client/ctl/output.h"

namespace rnicd::ctl {
namespace {

absl::Status RunVersion(const CommandLine&, Output& output) {
  output.Result("rnicctl " RNICD_VERSION "\n", {{"version", RNICD_VERSION}});
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kVersionCommand = {
    .name = "version",
    .summary = "print the version of rnicctl",
    .description = "The daemon's version is in 'rnicctl status'.\n",
    .examples = "rnicctl version\n",
    .run = RunVersion,
};

}  // namespace rnicd::ctl
