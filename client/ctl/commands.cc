#include "client/ctl/commands.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/terminal.h"

namespace rnicd::ctl {
namespace {

constexpr int kErrors = 2;

}  // namespace

std::span<const CommandSpec> Commands() {
  static const std::array kCommands = {
      kAdaptersCommand, kAllocCommand,    kRegisterCommand,  kDemoCommand,        kSelftestCommand, kPingpongCommand,
      kRegionsCommand,  kSessionsCommand, kListenersCommand, kConnectionsCommand, kStatusCommand,   kHealthCommand,
      kTenantsCommand,  kTopCommand,      kInspectCommand,   kEvictCommand,       kGrantCommand,    kDoorsCommand,
      kDrainCommand,    kLogLevelCommand, kReloadCommand,    kDumpCommand,        kUpgradeCommand,  kCompletionCommand,
      kVersionCommand,  kHelpCommand};
  return kCommands;
}

int RunRnicctl(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  // Determined before parsing, so that a mistake on the command line is reported in the requested format.
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  Output output(out, err, json, !json && &err == &std::cerr && Terminal::IsTerminal(kErrors));
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments, Commands(), CommonOptions());
  absl::Status status = line.ok() ? line->command->run(*line, output) : line.status();
  status.Update(output.written());
  if (!status.ok()) {
    output.Error(status);
  }
  return ExitCodeOf(status);
}

}  // namespace rnicd::ctl
