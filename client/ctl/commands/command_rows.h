#pragma once

#include "client/ctl/line/command_line.h"

namespace rnicd::ctl {

// One row per command, each defined in the file of its name, except that related commands share one: own_memory.cc has
// alloc and register, lists.cc sessions, regions, listeners, connections, tenants and doors, status.cc also health,
// inspect.cc also evict, daemon_control.cc log-level, reload and dump.
extern const CommandSpec kAdaptersCommand;
extern const CommandSpec kAllocCommand;
extern const CommandSpec kRegisterCommand;
extern const CommandSpec kDemoCommand;
extern const CommandSpec kSelftestCommand;
extern const CommandSpec kPingpongCommand;
extern const CommandSpec kRegionsCommand;
extern const CommandSpec kSessionsCommand;
extern const CommandSpec kListenersCommand;
extern const CommandSpec kConnectionsCommand;
extern const CommandSpec kStatusCommand;
extern const CommandSpec kHealthCommand;
extern const CommandSpec kTenantsCommand;
extern const CommandSpec kTopCommand;
extern const CommandSpec kInspectCommand;
extern const CommandSpec kEvictCommand;
extern const CommandSpec kGrantCommand;
extern const CommandSpec kDoorsCommand;
extern const CommandSpec kDrainCommand;
extern const CommandSpec kLogLevelCommand;
extern const CommandSpec kReloadCommand;
extern const CommandSpec kDumpCommand;
extern const CommandSpec kUpgradeCommand;

}  // namespace rnicd::ctl
