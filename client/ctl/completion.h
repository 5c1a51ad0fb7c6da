#pragma once

#include <span>
#include <string>

#include "client/ctl/command_line.h"

namespace rnicd::ctl {

// Returns a bash script that completes these commands and options; to be sourced.
std::string BashCompletion(std::span<const CommandSpec> commands, std::span<const OptionSpec> common_options);

}  // namespace rnicd::ctl
