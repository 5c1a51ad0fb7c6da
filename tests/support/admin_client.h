#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rnicd/v1/admin_service.pb.h"
#include "tests/support/call_result.h"
#include "tests/support/daemon_process.h"

namespace rnicd::test {

// The operator's answers, each over a connection of its own that is closed again.
v1::GetStatusResponse AdminStatus(const DaemonProcess& daemon);
std::vector<v1::SessionInfo> AdminSessions(const DaemonProcess& daemon);
std::vector<v1::RegionInfo> AdminRegions(const DaemonProcess& daemon);
// The one region of that id; nothing when the daemon lists none.
std::optional<v1::RegionInfo> AdminRegion(const DaemonProcess& daemon, uint64_t mr_id);

std::vector<v1::TenantInfo> AdminTenants(const DaemonProcess& daemon);
// The one tenant of that name; nothing when the daemon lists none.
std::optional<v1::TenantInfo> AdminTenant(const DaemonProcess& daemon, const std::string& name);
std::vector<v1::GrantInfo> AdminGrants(const DaemonProcess& daemon);
// A StateDump as JSON.
std::string AdminDump(const DaemonProcess& daemon);

// What the operator does, likewise.
CallResult<v1::EvictSessionResponse> Evict(const DaemonProcess& daemon, uint64_t session_id);
CallResult<v1::DrainResponse> Drain(const DaemonProcess& daemon, bool resume = false);
CallResult<v1::CreateGrantResponse> CreateGrant(const DaemonProcess& daemon, const v1::CreateGrantRequest& request);
CallResult<v1::RevokeGrantResponse> RevokeGrant(const DaemonProcess& daemon, uint64_t grant_id);

// What the node uses of one resource.
uint64_t Used(const v1::GetStatusResponse& status, const std::string& resource);

// What the daemon itself is made of when nobody uses it.
struct IdleState {
  uint64_t open_fds = 0;
  uint64_t threads = 0;
};

// Uses the daemon once, so that everything it makes lazily is made, and takes its measure when it is at rest again.
IdleState MeasureIdle(DaemonProcess& daemon);

// Empty when the daemon holds nothing for anybody: no sessions, memory, pins, keys, tickets, connections other than
// the one that asks, and no more descriptors and threads than when idle. Otherwise what it still holds.
std::string WhatIsHeld(const DaemonProcess& daemon, const IdleState& idle);

// Waits for that, and is a test failure when it does not come.
void ExpectNothingHeld(const DaemonProcess& daemon, const IdleState& idle);

}  // namespace rnicd::test
