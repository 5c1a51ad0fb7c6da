#pragma once

#include <ostream>
#include <span>
#include <string>

#include "client/ctl/line/command_line.h"
#include "client/ctl/output/output.h"

namespace rnicd::ctl {

// The rows of the commands about the tool itself; help.cc has version too.
extern const CommandSpec kCompletionCommand;
extern const CommandSpec kVersionCommand;
extern const CommandSpec kHelpCommand;

// Every command, in the order of help. To add one: a file of client/ctl/commands that defines its row, a line in its
// command_rows.h and one in commands.cc.
std::span<const CommandSpec> Commands();

// Parses, runs, prints, and returns the exit code. `arguments` lacks the program's name.
int RunRnicctl(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

// Output of 'rnicctl help'.
std::string OverviewHelp();
// Output of 'rnicctl help COMMAND'.
std::string CommandHelp(const CommandSpec& command);

// Returns a bash script that completes these commands and options; to be sourced.
std::string BashCompletion(std::span<const CommandSpec> commands, std::span<const OptionSpec> common_options);

}  // namespace rnicd::ctl
