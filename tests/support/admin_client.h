#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rnicd/v1/admin_service.pb.h"
#include "tests/support/calls/call_result.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

// Responses to the operator's queries. Each call opens and closes its own connection.
v1::GetStatusResponse AdminStatus(const DaemonProcess& daemon);
std::vector<v1::SessionInfo> AdminSessions(const DaemonProcess& daemon);
std::vector<v1::RegionInfo> AdminRegions(const DaemonProcess& daemon);
// The region with this id; nullopt if the daemon lists none.
std::optional<v1::RegionInfo> AdminRegion(const DaemonProcess& daemon, uint64_t mr_id);

std::vector<v1::ListenerInfo> AdminListeners(const DaemonProcess& daemon);
std::vector<v1::ConnectionInfo> AdminConnections(const DaemonProcess& daemon);

std::vector<v1::TenantInfo> AdminTenants(const DaemonProcess& daemon);
// The tenant with this name; nullopt if the daemon lists none.
std::optional<v1::TenantInfo> AdminTenant(const DaemonProcess& daemon, const std::string& name);
std::vector<v1::GrantInfo> AdminGrants(const DaemonProcess& daemon);
// The StateDump as JSON.
std::string AdminDump(const DaemonProcess& daemon);

// The operator's commands. Each call opens and closes its own connection.
CallResult<v1::EvictSessionResponse> Evict(const DaemonProcess& daemon, uint64_t session_id);
CallResult<v1::DrainResponse> Drain(const DaemonProcess& daemon, bool resume = false);
CallResult<v1::CreateGrantResponse> CreateGrant(const DaemonProcess& daemon, const v1::CreateGrantRequest& request);
CallResult<v1::RevokeGrantResponse> RevokeGrant(const DaemonProcess& daemon, uint64_t grant_id);

// The node's use of one resource.
uint64_t Used(const v1::GetStatusResponse& status, const std::string& resource);

// Descriptors and threads of the daemon while it has no clients, without the files of its memory pool.
struct IdleState {
  uint64_t open_fds = 0;
  uint64_t threads = 0;
};

// Uses the daemon once, so that everything created lazily exists, and measures it when it is idle again.
IdleState MeasureIdle(DaemonProcess& daemon);

// Empty if the daemon holds nothing for any client: no sessions, memory, pins, keys or tickets, no connection but the
// one of this query, and no more descriptors and threads than when idle. Otherwise lists what it still holds.
std::string WhatIsHeld(const DaemonProcess& daemon, const IdleState& idle);

// Waits until WhatIsHeld is empty; a test failure if that does not happen within kTimeout.
void ExpectNothingHeld(const DaemonProcess& daemon, const IdleState& idle);

}  // namespace rnicd::test
