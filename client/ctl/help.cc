#include "client/ctl/commands.h"

#include <algorithm>
#include <vector>

#include "client/ctl/line/common_options.h"
#include "client/ctl/output/output.h"

namespace rnicd::ctl {
namespace {

// "  --size SIZE   bytes", the texts in one column.
std::string OptionLines(std::span<const OptionSpec> options) {
  size_t width = 0;
  std::vector<std::string> names;
  for (const OptionSpec& option : options) {
    const std::string value = option.value_name.empty() ? "" : " " + std::string(option.value_name);
    names.push_back(std::string(option.name) + value);
    width = std::max(width, names.back().size());
  }
  std::string text;
  for (size_t index = 0; index < options.size(); ++index) {
    text += "  " + names[index] + std::string(width - names[index].size() + 3, ' ') + std::string(options[index].help) +
            "\n";
  }
  return text;
}

std::string Indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    text += "  " + std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  return text;
}

absl::Status RunHelp(const CommandLine& line, Output& output) {
  if (!line.argument.has_value()) {
    output.Text(OverviewHelp());
    return absl::OkStatus();
  }
  for (const CommandSpec& command : Commands()) {
    if (command.name == *line.argument) {
      output.Text(CommandHelp(command));
      return absl::OkStatus();
    }
  }
  return UsageError("unknown command '" + *line.argument + "'");
}

absl::Status RunVersion(const CommandLine&, Output& output) {
  output.Result("rnicctl " RNICD_VERSION "\n", {{"version", RNICD_VERSION}});
  return absl::OkStatus();
}

}  // namespace

std::string OverviewHelp() {
  std::string text =
      "rnicctl: registered RDMA memory from rnicd, and what rnicd holds.\n"
      "\n"
      "Usage: rnicctl COMMAND [OPTION...]\n"
      "\n"
      "Commands:\n";
  size_t width = 0;
  for (const CommandSpec& command : Commands()) {
    width = std::max(width, command.name.size());
  }
  for (const CommandSpec& command : Commands()) {
    text += "  " + std::string(command.name) + std::string(width - command.name.size() + 3, ' ') +
            std::string(command.summary) + "\n";
  }
  return text + "\nOptions of every command:\n" + OptionLines(CommonOptions()) +
         "\n"
         "Exit code: 0 done, 1 refused, failed or output lost, 2 the command line is wrong.\n"
         "'rnicctl COMMAND --help' explains a command and shows examples.\n";
}

std::string CommandHelp(const CommandSpec& command) {
  std::string argument = command.argument_name.empty() ? "" : " " + std::string(command.argument_name);
  argument += command.operand_name.empty() ? "" : " [" + std::string(command.operand_name) + "]";
  std::string text = "rnicctl " + std::string(command.name) + ": " + std::string(command.summary) +
                     "\n\nUsage: rnicctl " + std::string(command.name) + argument + " [OPTION...]\n";
  if (!command.description.empty()) {
    text += "\n" + std::string(command.description);
  }
  if (!command.options.empty()) {
    text += "\nOptions:\n" + OptionLines(command.options);
  }
  return text + "\nOptions of every command:\n" + OptionLines(CommonOptions()) + "\nExamples:\n" +
         Indented(command.examples);
}

constinit const CommandSpec kHelpCommand = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .examples = "rnicctl help\nrnicctl help register\n",
    .argument_name = "COMMAND",
    .argument_choices =
        "adapters alloc register demo selftest pingpong regions sessions listeners connections status health tenants "
        "top "
        "inspect evict grant doors drain log-level reload dump upgrade completion version",
    .run = RunHelp,
};

constinit const CommandSpec kVersionCommand = {
    .name = "version",
    .summary = "print the version of rnicctl",
    .description = "The daemon's version is in 'rnicctl status'.\n",
    .examples = "rnicctl version\n",
    .run = RunVersion,
};

}  // namespace rnicd::ctl
