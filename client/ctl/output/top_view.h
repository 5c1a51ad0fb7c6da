#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/ctl/output/output.h"
#include "client/ctl/output/terminal.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::ctl {

// The data of one frame of 'top'.
struct TopState {
  v1::GetStatusResponse status;
  std::vector<v1::TenantInfo> tenants;
  std::vector<v1::SessionInfo> sessions;
  // As of Listing.
  std::vector<uint32_t> tenant_generations;
  std::vector<uint32_t> session_generations;
  std::vector<v1::GetStatusResponse> older;
};

// The node, then the tenants, then the sessions, each sorted by pinned bytes, highest first. Cut to the size, with a
// line that says how many more there are.
std::vector<std::string> TopLines(TopState state, const ScreenSize& size);
// The whole frame, not cut.
Json TopJson(const TopState& state);

}  // namespace rnicd::ctl
