#pragma once

#include "client/ctl/command_line.h"

namespace rnicd::ctl {

// One row per command, each defined in the file of its name.
extern const CommandSpec kAdaptersCommand;
extern const CommandSpec kAllocCommand;
extern const CommandSpec kRegisterCommand;
extern const CommandSpec kDemoCommand;
extern const CommandSpec kRegionsCommand;
extern const CommandSpec kSessionsCommand;
extern const CommandSpec kStatusCommand;
extern const CommandSpec kCompletionCommand;
extern const CommandSpec kVersionCommand;
extern const CommandSpec kHelpCommand;

}  // namespace rnicd::ctl
