#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::ctl {

// One option, as help, completion and parser see it. Options have long names only.
struct OptionSpec {
  // With the dashes: "--size".
  std::string_view name;
  // "SIZE"; empty for an option without a value.
  std::string_view value_name;
  std::string_view help;
  // What completion offers as value, separated by spaces; "@directory" for directories.
  std::string_view choices;
};

class Output;
struct CommandLine;

// One command. Tables of them are constants; see commands.cc.
struct CommandSpec {
  std::string_view name;
  // One line.
  std::string_view summary;
  // What help says below the summary; whole lines.
  std::string_view description;
  // One example per line.
  std::string_view examples;
  std::span<const OptionSpec> options;
  // "SHELL"; empty when the command takes no argument.
  std::string_view argument_name;
  std::string_view argument_choices;
  // "ID": a word behind the argument; empty when there is none. It may be left out, which the command judges.
  std::string_view operand_name;
  absl::Status (*run)(const CommandLine& line, Output& output);
};

// What was typed, checked against the tables.
struct CommandLine {
  const CommandSpec* command = nullptr;
  // By name with dashes. An option without value has "".
  std::map<std::string, std::string, std::less<>> options;
  std::optional<std::string> argument;
  std::optional<std::string> operand;

  bool Has(std::string_view option) const { return options.find(option) != options.end(); }
  // The option's value, or nothing when it was not given.
  std::optional<std::string> Value(std::string_view option) const;
};

// A mistake of the user's: exit code 2.
absl::Status UsageError(std::string_view message);
// "option --size: 'many' is not a number".
absl::Status BadValue(std::string_view option, std::string_view value, std::string_view expected);
bool IsUsageError(const absl::Status& status);

// Reads the arguments after the program's name: a command, its options and the common ones, as "--size 4096" or
// "--size=4096". Common options may stand before the command too. "--help" and "--version" are the commands of these
// names, wherever they stand.
// Errors: UsageError, which names what is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                             std::span<const CommandSpec> commands,
                                             std::span<const OptionSpec> common_options);

}  // namespace rnicd::ctl
