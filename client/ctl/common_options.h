#pragma once

#include <span>
#include <string>

#include "client/ctl/command_line.h"

namespace rnicd::ctl {

// The options that every command takes.
std::span<const OptionSpec> CommonOptions();

// --socket-dir, else RNICD_SOCKET_DIR, else /run/rnicd.
std::string SocketDir(const CommandLine& line);
// --admin-socket-dir, else the socket directory with "-admin".
std::string AdminSocketDir(const CommandLine& line);

}  // namespace rnicd::ctl
