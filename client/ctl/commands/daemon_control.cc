#include <algorithm>
#include <array>
#include <string_view>

#include "base/status.h"
#include "client/admin/admin.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/output.h"

namespace rnicd::ctl {
namespace {

absl::Status RunLogLevel(const CommandLine& line, Output& output) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), line.argument.value_or("")) == kLevels.end()) {
    return UsageError("say 'rnicctl log-level' and a level: debug, info, warning or error");
  }
  RNICD_ASSIGN_OR_RETURN(const std::string previous, Admin(AdminSocketDir(line)).SetLogLevel(*line.argument));
  output.Result("log level " + *line.argument + ", was " + previous + "\n",
                {{"level", *line.argument}, {"previous", previous}});
  return absl::OkStatus();
}

absl::Status RunReload(const CommandLine& line, Output& output) {
  RNICD_RETURN_IF_ERROR(Generations(AdminSocketDir(line)).ReloadPolicy());
  output.Result("the policy file was read and is in force\n", {{"reloaded", true}});
  return absl::OkStatus();
}

// Parsed and serialised again, so that the output is always valid JSON.
absl::Status RunDump(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::string text, Admin(AdminSocketDir(line)).Dump());
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return absl::DataLossError("the daemon's dump is not JSON");
  }
  output.Text(json.dump(2) + "\n");
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kLogLevelCommand = {
    .name = "log-level",
    .summary = "change what the daemon logs, until it is changed again or the daemon ends",
    .description = "Uses the admin socket, and is for operators only.\n",
    .examples = "rnicctl log-level debug\nrnicctl log-level info\n",
    .argument_name = "LEVEL",
    .argument_choices = "debug info warning error",
    .run = RunLogLevel,
};

constinit const CommandSpec kReloadCommand = {
    .name = "reload",
    .summary = "make the daemon reload its policy file",
    .description =
        "Uses the admin socket, and is for operators only. A file with a mistake is refused, and the policy in force\n"
        "stays; the error names the line. SIGHUP does the same, but reports only to the daemon's log.\n",
    .examples = "rnicctl reload\n",
    .run = RunReload,
};

constinit const CommandSpec kDumpCommand = {
    .name = "dump",
    .summary = "print the daemon's whole state as one JSON document, without tokens and secrets",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. The document is the message StateDump of\n"
        "admin_service.proto; numbers of 64 bits are strings in it. At most 100000 regions are in it.\n",
    .examples = "rnicctl dump > state.json\nrnicctl dump | jq '.sessions[].tenant'\n",
    .run = RunDump,
};

}  // namespace rnicd::ctl
