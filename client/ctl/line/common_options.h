#pragma once

#include <span>
#include <string>

#include "client/ctl/line/command_line.h"

namespace rnicd::ctl {

// The options that every command takes.
std::span<const OptionSpec> CommonOptions();

// Options of the commands that open sessions.
inline constexpr OptionSpec kGrantOption = {
    "--grant", "SECRET", "open the session as the tenant of this grant; others see it in 'ps': rather set RNICD_GRANT",
    ""};

// --grant, else empty: librnicd then reads RNICD_GRANT.
std::string GrantOf(const CommandLine& line);
// --socket-dir, else DefaultSocketDir.
std::string SocketDir(const CommandLine& line);
// --admin-socket-dir, else the socket directory with "-admin".
std::string AdminSocketDir(const CommandLine& line);

}  // namespace rnicd::ctl
