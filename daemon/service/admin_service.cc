#include "daemon/service/admin_service.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/service/convert.h"
#include "daemon/service/process_usage.h"

namespace rnicd::service {
namespace {

constexpr uint32_t kDefaultPageSize = 1000;
constexpr uint32_t kMaxPageSize = 10000;

uint64_t MillisecondsBetween(Instant from, Instant to) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count());
}

absl::StatusOr<uint32_t> PageSizeOf(uint32_t wanted) {
  if (wanted > kMaxPageSize) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_size");
  }
  return wanted == 0 ? kDefaultPageSize : wanted;
}

// The last entry of the page before: a session, and a region in it (0 for all of the session's regions).
struct PageToken {
  uint64_t session = 0;
  uint64_t region = 0;
  friend auto operator<=>(const PageToken&, const PageToken&) = default;
};

std::string Format(const PageToken& token) {
  return std::to_string(token.session) + "." + std::to_string(token.region);
}

absl::StatusOr<PageToken> ParsePageToken(const std::string& text) {
  PageToken token;
  if (text.empty()) {
    return token;
  }
  const char* const end = text.data() + text.size();
  const auto session = std::from_chars(text.data(), end, token.session);
  if (session.ec == std::errc() && session.ptr != end && *session.ptr == '.') {
    const auto region = std::from_chars(session.ptr + 1, end, token.region);
    if (region.ec == std::errc() && region.ptr == end) {
      return token;
    }
  }
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_token");
}

std::vector<v1::RegionInfo> RegionsOf(const core::Session& session) {
  std::vector<v1::RegionInfo> regions;
  for (const auto& [id, view] : session.ViewRegions()) {
    v1::RegionInfo info = ToWire(view);
    info.set_session_id(session.id().value);
    info.set_mr_id(id.value);
    info.set_pid(session.owner().pid);
    info.set_uid(session.owner().uid);
    regions.push_back(std::move(info));
  }
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) { return a.mr_id() < b.mr_id(); });
  return regions;
}

// Adds the session's regions behind `after` to the page. False when the page is full and more would follow.
bool AddRegions(const core::Session& session, const PageToken& after, uint32_t page_size,
                v1::ListRegionsResponse* response) {
  for (v1::RegionInfo& region : RegionsOf(session)) {
    const PageToken here{session.id().value, region.mr_id()};
    if (here <= after) {
      continue;
    }
    if (static_cast<uint32_t>(response->regions_size()) == page_size) {
      const v1::RegionInfo& last = response->regions(response->regions_size() - 1);
      response->set_next_page_token(Format({last.session_id(), last.mr_id()}));
      return false;
    }
    *response->add_regions() = std::move(region);
  }
  return true;
}

}  // namespace

AdminService::AdminService(gate::Gate gate, core::Node& node, const core::SessionRegistry& registry,
                           const ProcessFacts& facts)
    : gate_(std::move(gate)), node_(node), registry_(registry), facts_(facts) {}

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* context,
                                                  const v1::GetStatusRequest* /*request*/,
                                                  v1::GetStatusResponse* response) {
  return gate_.Unary(context, gate::Row("AdminService.GetStatus"), [&](gate::Call&) {
    FillStatus(response);
    return absl::OkStatus();
  });
}

void AdminService::FillStatus(v1::GetStatusResponse* response) const {
  response->set_version(facts_.version());
  response->set_provider(std::string(node_.provider.name()));
  response->set_pid(getpid());
  response->set_uptime_ms(MillisecondsBetween(node_.started, node_.clock.Now()));
  response->set_metrics_address(facts_.metrics_address());
  response->set_connections(facts_.connections());
  for (const auto& listed : registry_.List()) {
    response->set_sessions(response->sessions() + 1);
    response->set_sessions_ending(response->sessions_ending() + (listed.session->ending() ? 1 : 0));
  }
  ToWire(*node_.ledger, response->mutable_resources());
  response->set_registered_pages(node_.ledger->used(core::Resource::kPinnedBytes) / kNdkPageBytes);
  response->set_fd_tickets(node_.tickets.size());
  response->set_device_regions(node_.provider.live_regions());
  const ProcessUsage usage = ReadProcessUsage();
  response->set_open_fds(usage.open_fds);
  response->set_threads(usage.threads);
  response->set_resident_bytes(usage.resident_bytes);
}

v1::SessionInfo AdminService::ToInfo(const core::SessionRegistry::Listed& listed) const {
  const core::Session& session = *listed.session;
  v1::SessionInfo info;
  info.set_session_id(session.id().value);
  info.set_label(session.label());
  info.set_pid(session.owner().pid);
  info.set_uid(session.owner().uid);
  info.set_gid(session.owner().gid);
  info.set_age_ms(MillisecondsBetween(session.opened(), node_.clock.Now()));
  info.set_connections(listed.connections);
  ToWire(session.ledger(), info.mutable_resources());
  return info;
}

grpc::ServerUnaryReactor* AdminService::ListSessions(grpc::CallbackServerContext* context,
                                                     const v1::ListSessionsRequest* request,
                                                     v1::ListSessionsResponse* response) {
  return gate_.Unary(context, gate::Row("AdminService.ListSessions"), [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const uint32_t page_size, PageSizeOf(request->page_size()));
    RNICD_ASSIGN_OR_RETURN(const PageToken after, ParsePageToken(request->page_token()));
    for (const auto& listed : registry_.List()) {
      if (listed.session->id().value <= after.session) {
        continue;
      }
      if (static_cast<uint32_t>(response->sessions_size()) == page_size) {
        response->set_next_page_token(Format({response->sessions(response->sessions_size() - 1).session_id(), 0}));
        break;
      }
      *response->add_sessions() = ToInfo(listed);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListRegions(grpc::CallbackServerContext* context,
                                                    const v1::ListRegionsRequest* request,
                                                    v1::ListRegionsResponse* response) {
  return gate_.Unary(context, gate::Row("AdminService.ListRegions"), [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const uint32_t page_size, PageSizeOf(request->page_size()));
    RNICD_ASSIGN_OR_RETURN(const PageToken after, ParsePageToken(request->page_token()));
    for (const auto& listed : registry_.List()) {
      if (listed.session->id().value < after.session) {
        continue;
      }
      if (!AddRegions(*listed.session, after, page_size, response)) {
        break;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace rnicd::service
