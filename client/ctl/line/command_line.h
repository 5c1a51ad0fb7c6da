#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::ctl {

// One option, for help, completion and parser. Options have long names only, apart from "-h" for "--help".
struct OptionSpec {
  // Name with the dashes: "--size".
  std::string_view name;
  // Name of the value, "SIZE"; empty for an option without a value.
  std::string_view value_name;
  std::string_view help;
  // Values that completion offers, separated by spaces; "@directory" for directories.
  std::string_view choices;
};

class Output;
struct CommandLine;

// One command. Tables of them are constants; see commands.cc.
struct CommandSpec {
  std::string_view name;
  // Summary, one line.
  std::string_view summary;
  // Text below the summary in help; whole lines.
  std::string_view description;
  // One example per line.
  std::string_view examples;
  std::span<const OptionSpec> options;
  // Name of the argument, "SHELL"; empty when the command takes none.
  std::string_view argument_name;
  std::string_view argument_choices;
  // Name of an optional word after the argument, "ID"; empty when there is none. The command itself checks whether it
  // is required.
  std::string_view operand_name;
  absl::Status (*run)(const CommandLine& line, Output& output);
};

// The parsed command line, checked against the tables.
struct CommandLine {
  const CommandSpec* command = nullptr;
  // Values by option name with dashes; "" for an option without value.
  std::map<std::string, std::string, std::less<>> options;
  std::optional<std::string> argument;
  std::optional<std::string> operand;

  bool Has(std::string_view option) const { return options.find(option) != options.end(); }
  // The option's value; empty when it was not given.
  std::optional<std::string> Value(std::string_view option) const;
};

// A user error: exit code 2.
absl::Status UsageError(std::string_view message);
// Creates a UsageError such as "option --size: 'many' is not a number".
absl::Status BadValue(std::string_view option, std::string_view value, std::string_view expected);
bool IsUsageError(const absl::Status& status);

// Parses the arguments after the program's name: a command, its options and the common ones, as "--size 4096" or
// "--size=4096"; "--socket_dir" is "--socket-dir". Common options may also precede the command. "--help", "-h" and
// "--version" select the commands of these names, at any position. Errors: UsageError that names the mistake.
absl::StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                             std::span<const CommandSpec> commands,
                                             std::span<const OptionSpec> common_options);

}  // namespace rnicd::ctl
