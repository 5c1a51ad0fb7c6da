#include "daemon/service/admin_service.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "daemon/service/admin_grants.h"
#include "daemon/service/admin_pages.h"
#include "daemon/service/admin_view.h"
#include "daemon/service/unary.h"
#include "rnicd/v1/admin_service.grpc.pb.h"

namespace rnicd::service {
namespace {

class AdminService final : public v1::AdminService::CallbackService {
 public:
  AdminService(gate::Gate gate, core::Node& node, core::SessionRegistry& registry, ProcessControl& process);

  RNICD_UNARY(GetStatus)
  RNICD_UNARY(ListSessions)
  RNICD_UNARY(ListRegions)
  RNICD_UNARY(ListTenants)
  RNICD_UNARY(InspectSession)
  RNICD_UNARY(DumpState)

  RNICD_UNARY(EvictSession)
  RNICD_UNARY(Drain)
  RNICD_UNARY(SetLogLevel)
  RNICD_UNARY(ReloadPolicy)

  RNICD_UNARY(CreateGrant)
  RNICD_UNARY(RevokeGrant)
  RNICD_UNARY(ListGrants)
  RNICD_UNARY(SetPods)

 private:
  gate::Gate gate_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  ProcessControl& process_;
  const AdminView view_;
};

// Adds the session's regions behind `after` to the page. False when the page is full and more would follow.
bool AddRegions(const core::Session& session, const PageToken& after, uint32_t page_size,
                v1::ListRegionsResponse* response) {
  for (v1::RegionInfo& region : AdminView::Regions(session)) {
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

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) {
    return MakeError(ErrorReason::INTERNAL_FAULT);
  }
  return json;
}

// The same error with its text cut to fit a trailer of gRPC, which is limited to 8 KiB and has the text three times.
absl::Status Shortened(const absl::Status& status) {
  constexpr size_t kTextBytesMax = 1500;
  const std::string_view text(status.message().data(), status.message().size());
  if (text.size() <= kTextBytesMax) {
    return status;
  }
  // Cuts after a whole line if there is one, else after a whole character.
  size_t end = text.rfind('\n', kTextBytesMax);
  if (end == std::string_view::npos) {
    end = kTextBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end;
    }
  }
  absl::Status shortened(status.code(), std::string(text.substr(0, end)) + "\n... and more, which the log has");
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { shortened.SetPayload(type, payload); });
  return shortened;
}

}  // namespace

AdminService::AdminService(gate::Gate gate, core::Node& node, core::SessionRegistry& registry, ProcessControl& process)
    : gate_(std::move(gate)), node_(node), registry_(registry), process_(process), view_(node, registry, process) {}

// --- inspection ---

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* /*context*/,
                                                  const v1::GetStatusRequest* request,
                                                  v1::GetStatusResponse* response) {
  return gate_.Unary(gate::Row("AdminService.GetStatus"), request, response, [&](gate::Call&) {
    *response = view_.Status();
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListSessions(grpc::CallbackServerContext* /*context*/,
                                                     const v1::ListSessionsRequest* request,
                                                     v1::ListSessionsResponse* response) {
  return gate_.Unary(gate::Row("AdminService.ListSessions"), request, response, [&](gate::Call&) -> absl::Status {
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
      *response->add_sessions() = view_.Session(listed);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListRegions(grpc::CallbackServerContext* /*context*/,
                                                    const v1::ListRegionsRequest* request,
                                                    v1::ListRegionsResponse* response) {
  return gate_.Unary(gate::Row("AdminService.ListRegions"), request, response, [&](gate::Call&) -> absl::Status {
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

grpc::ServerUnaryReactor* AdminService::ListTenants(grpc::CallbackServerContext* /*context*/,
                                                    const v1::ListTenantsRequest* request,
                                                    v1::ListTenantsResponse* response) {
  return gate_.Unary(gate::Row("AdminService.ListTenants"), request, response, [&](gate::Call&) {
    for (v1::TenantInfo& tenant : view_.Tenants()) {
      *response->add_tenants() = std::move(tenant);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::InspectSession(grpc::CallbackServerContext* /*context*/,
                                                       const v1::InspectSessionRequest* request,
                                                       v1::InspectSessionResponse* response) {
  return gate_.Unary(gate::Row("AdminService.InspectSession"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(*response, view_.Inspect(SessionId{request->session_id()}));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::DumpState(grpc::CallbackServerContext* /*context*/,
                                                  const v1::DumpStateRequest* request,
                                                  v1::DumpStateResponse* response) {
  return gate_.Unary(gate::Row("AdminService.DumpState"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(*response->mutable_json(), ToJson(view_.Dump()));
    return absl::OkStatus();
  });
}

// --- control ---

grpc::ServerUnaryReactor* AdminService::EvictSession(grpc::CallbackServerContext* /*context*/,
                                                     const v1::EvictSessionRequest* request,
                                                     v1::EvictSessionResponse* response) {
  const auto evict = [&](const std::shared_ptr<gate::Call>& call) {
    const auto session = registry_.Evict(SessionId{request->session_id()});
    if (!session.ok()) {
      call->Finish(session.status());
      return;
    }
    // The session is ending, perhaps for an earlier cause; this call only waits for the end.
    registry_.End(*session, core::EndCause::kEvicted, [call, response](const core::Reclaimed& reclaimed) {
      call->Finish(absl::OkStatus(), [&] {
        response->set_reclaimed_regions(reclaimed.regions);
        response->set_reclaimed_pinned_bytes(reclaimed.pinned_bytes);
        response->set_reclaimed_memory_bytes(reclaimed.memory_bytes);
      });
    });
  };
  return gate_.UnaryAsync(gate::Row("AdminService.EvictSession"), request, response, evict);
}

grpc::ServerUnaryReactor* AdminService::Drain(grpc::CallbackServerContext* /*context*/, const v1::DrainRequest* request,
                                              v1::DrainResponse* response) {
  return gate_.Unary(gate::Row("AdminService.Drain"), request, response, [&](gate::Call&) {
    response->set_draining(process_.SetDraining(!request->resume()));
    response->set_sessions(registry_.List().size());
    response->set_regions(node_.ledger->used(core::Resource::kRegions));
    response->set_pinned_bytes(node_.ledger->used(core::Resource::kPinnedBytes));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::SetLogLevel(grpc::CallbackServerContext* /*context*/,
                                                    const v1::SetLogLevelRequest* request,
                                                    v1::SetLogLevelResponse* response) {
  return gate_.Unary(gate::Row("AdminService.SetLogLevel"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(*response->mutable_previous(), process_.SetLogLevel(request->level()));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ReloadPolicy(grpc::CallbackServerContext* /*context*/,
                                                     const v1::ReloadPolicyRequest* request,
                                                     v1::ReloadPolicyResponse* response) {
  return gate_.Unary(gate::Row("AdminService.ReloadPolicy"), request, response,
                     [&](gate::Call&) { return Shortened(process_.ReloadPolicy()); });
}

// --- grants and pods ---

grpc::ServerUnaryReactor* AdminService::CreateGrant(grpc::CallbackServerContext* /*context*/,
                                                    const v1::CreateGrantRequest* request,
                                                    v1::CreateGrantResponse* response) {
  return gate_.Unary(gate::Row("AdminService.CreateGrant"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const core::GrantTerms terms, FromWire(*request));
    RNICD_ASSIGN_OR_RETURN(core::IssuedGrant grant, node_.tenants.CreateGrant(terms));
    response->set_grant_id(grant.id.value);
    response->set_secret(std::move(grant.secret));
    response->set_tenant("grant/" + terms.name);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::RevokeGrant(grpc::CallbackServerContext* /*context*/,
                                                    const v1::RevokeGrantRequest* request,
                                                    v1::RevokeGrantResponse* response) {
  return gate_.Unary(gate::Row("AdminService.RevokeGrant"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<core::Tenant> tenant,
                           node_.tenants.RevokeGrant(GrantId{request->grant_id()}));
    response->set_sessions_ended(registry_.EndAllOf(*tenant, core::EndCause::kGrantRevoked));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListGrants(grpc::CallbackServerContext* /*context*/,
                                                   const v1::ListGrantsRequest* request,
                                                   v1::ListGrantsResponse* response) {
  return gate_.Unary(gate::Row("AdminService.ListGrants"), request, response, [&](gate::Call&) {
    for (v1::GrantInfo& grant : view_.Grants()) {
      *response->add_grants() = std::move(grant);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::SetPods(grpc::CallbackServerContext* /*context*/,
                                                const v1::SetPodsRequest* request, v1::SetPodsResponse* response) {
  return gate_.Unary(gate::Row("AdminService.SetPods"), request, response, [&](gate::Call&) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(std::vector<core::PodFacts> pods, FromWire(*request));
    node_.tenants.SetPods(std::move(pods));
    return absl::OkStatus();
  });
}

std::unique_ptr<grpc::Service> MakeAdminService(gate::Gate gate, core::Node& node, core::SessionRegistry& registry,
                                                ProcessControl& process) {
  return std::make_unique<AdminService>(std::move(gate), node, registry, process);
}

}  // namespace rnicd::service
