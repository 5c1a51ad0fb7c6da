#pragma once

#include <string>

#include "client/ctl/command_line.h"

namespace rnicd::ctl {

// What 'rnicctl help' prints.
std::string OverviewHelp();
// What 'rnicctl help COMMAND' prints.
std::string CommandHelp(const CommandSpec& command);

}  // namespace rnicd::ctl
