#pragma once

#include <ostream>
#include <span>
#include <string>

#include "client/ctl/command_line.h"
#include "client/ctl/output.h"

namespace rnicd::ctl {

// Every command, in the order of help. To add one: a file that defines its row, a line in
// command_rows.h and one in commands.cc.
std::span<const CommandSpec> Commands();

// Parses, runs, prints, and returns the exit code. `arguments` lacks the program's name.
int RunRnicctl(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace rnicd::ctl
