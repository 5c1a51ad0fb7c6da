#include "client/ctl/admin.h"

#include <utility>

#include "base/status.h"
#include "client/cpp/channel.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::seconds kDeadline(30);
constexpr uint32_t kPageSize = 10'000;

// Follows the page tokens. `items_of` answers the repeated field of a response.
template <typename Item, typename Request, typename Response, typename ItemsOf>
absl::StatusOr<std::vector<Item>> FetchAll(v1::AdminService::Stub& stub,
                                           grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                                          const Request&, Response*),
                                           const ItemsOf& items_of) {
  std::vector<Item> all;
  Request request;
  request.set_page_size(kPageSize);
  for (;;) {
    RNICD_ASSIGN_OR_RETURN(const Response response, CallUnary(stub, method, request, kDeadline));
    const auto& items = items_of(response);
    all.insert(all.end(), items.begin(), items.end());
    if (response.next_page_token().empty()) {
      return all;
    }
    if (response.next_page_token() == request.page_token()) {
      return TransportFailure(absl::StatusCode::kInternal, "the list's page token does not advance");
    }
    request.set_page_token(response.next_page_token());
  }
}

}  // namespace

Admin::Admin(const std::string& admin_socket_dir)
    : stub_(v1::AdminService::NewStub(MakeUnixChannel(admin_socket_dir + "/admin.sock"))) {}

absl::StatusOr<v1::GetStatusResponse> Admin::Status() {
  return CallUnary(*stub_, &v1::AdminService::Stub::GetStatus, {}, kDeadline);
}

absl::StatusOr<std::vector<v1::SessionInfo>> Admin::Sessions() {
  return FetchAll<v1::SessionInfo>(*stub_, &v1::AdminService::Stub::ListSessions,
                                   [](const auto& response) -> const auto& { return response.sessions(); });
}

absl::StatusOr<std::vector<v1::RegionInfo>> Admin::Regions() {
  return FetchAll<v1::RegionInfo>(*stub_, &v1::AdminService::Stub::ListRegions,
                                  [](const auto& response) -> const auto& { return response.regions(); });
}

}  // namespace rnicd::ctl
