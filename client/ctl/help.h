#pragma once

#include <string>

#include "client/ctl/command_line.h"

namespace rnicd::ctl {

// Output of 'rnicctl help'.
std::string OverviewHelp();
// Output of 'rnicctl help COMMAND'.
std::string CommandHelp(const CommandSpec& command);

}  // namespace rnicd::ctl
