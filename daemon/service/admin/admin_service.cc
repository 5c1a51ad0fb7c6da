#include "daemon/service/admin/admin_service.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "base/pod_uid.h"
#include "base/status.h"
#include "daemon/service/admin/admin_grants.h"
#include "daemon/service/admin/admin_pages.h"
#include "daemon/service/admin/admin_view.h"
#include "daemon/service/messages/field_checks.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::service {
namespace {

class AdminHandlers {
 public:
  AdminHandlers(core::Node& node, core::SessionRegistry& registry, ProcessControl& process)
      : node_(node), registry_(registry), process_(process), view_(node, registry, process) {}

  absl::Status GetStatus(const v1::GetStatusRequest& request, v1::GetStatusResponse* response);
  absl::Status ListSessions(const v1::ListSessionsRequest& request, v1::ListSessionsResponse* response);
  absl::Status ListRegions(const v1::ListRegionsRequest& request, v1::ListRegionsResponse* response);
  absl::Status ListListeners(const v1::ListListenersRequest& request, v1::ListListenersResponse* response);
  absl::Status ListConnections(const v1::ListConnectionsRequest& request, v1::ListConnectionsResponse* response);
  absl::Status ListTenants(const v1::ListTenantsRequest& request, v1::ListTenantsResponse* response);
  absl::Status InspectSession(const v1::InspectSessionRequest& request, v1::InspectSessionResponse* response);
  absl::Status DumpState(const v1::DumpStateRequest& request, v1::DumpStateResponse* response);
  void EvictSession(const std::shared_ptr<gate::Call>& call, const v1::EvictSessionRequest& request,
                    v1::EvictSessionResponse* response);
  absl::Status Drain(const v1::DrainRequest& request, v1::DrainResponse* response);
  absl::Status SetLogLevel(const v1::SetLogLevelRequest& request, v1::SetLogLevelResponse* response);
  absl::Status ReloadPolicy(const v1::ReloadPolicyRequest& request, v1::ReloadPolicyResponse* response);
  void CreateGrant(const v1::CreateGrantRequest& request, const gate::Reply<v1::CreateGrantResponse>& reply);
  void RevokeGrant(const v1::RevokeGrantRequest& request, const gate::Reply<v1::RevokeGrantResponse>& reply);
  absl::Status BindGrant(gate::Call& call, const v1::BindGrantRequest& request, v1::BindGrantResponse* response);
  absl::Status ListGrants(const v1::ListGrantsRequest& request, v1::ListGrantsResponse* response);
  absl::Status SetPods(const v1::SetPodsRequest& request, v1::SetPodsResponse* response);

 private:
  core::Node& node_;
  core::SessionRegistry& registry_;
  ProcessControl& process_;
  const AdminView view_;
};

uint64_t IdOf(const v1::RegionInfo& region) { return region.mr_id(); }
uint64_t IdOf(const v1::ListenerInfo& listener) { return listener.listener_id(); }
uint64_t IdOf(const v1::ConnectionInfo& connection) { return connection.connector_id(); }

// Fills one page, in the order of sessions and ids. `items_of` returns what a session has; `field` is the response's.
template <typename Request, typename Response, typename ItemsOf, typename Field>
absl::Status ListPage(const core::SessionRegistry& registry, const Request& request, const ItemsOf& items_of,
                      const Field& field, Response* response) {
  RNICD_ASSIGN_OR_RETURN(const uint32_t page_size, PageSizeOf(request.page_size()));
  RNICD_ASSIGN_OR_RETURN(const PageToken after, ParsePageToken(request.page_token()));
  auto& items = *field(response);
  for (const auto& listed : registry.List()) {
    if (listed.session->id().value < after.session) {
      continue;
    }
    for (auto& item : items_of(*listed.session)) {
      if (PageToken{item.session_id(), IdOf(item)} <= after) {
        continue;
      }
      if (static_cast<uint32_t>(items.size()) == page_size) {
        const auto& last = items.Get(items.size() - 1);
        response->set_next_page_token(Format({last.session_id(), IdOf(last)}));
        return absl::OkStatus();
      }
      *items.Add() = std::move(item);
    }
  }
  return absl::OkStatus();
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

// --- inspection ---

absl::Status AdminHandlers::GetStatus(const v1::GetStatusRequest& /*request*/, v1::GetStatusResponse* response) {
  *response = view_.Status();
  return absl::OkStatus();
}

absl::Status AdminHandlers::ListSessions(const v1::ListSessionsRequest& request, v1::ListSessionsResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const uint32_t page_size, PageSizeOf(request.page_size()));
  RNICD_ASSIGN_OR_RETURN(const PageToken after, ParsePageToken(request.page_token()));
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
}

absl::Status AdminHandlers::ListRegions(const v1::ListRegionsRequest& request, v1::ListRegionsResponse* response) {
  return ListPage(
      registry_, request, AdminView::Regions, [](v1::ListRegionsResponse* page) { return page->mutable_regions(); },
      response);
}

absl::Status AdminHandlers::ListListeners(const v1::ListListenersRequest& request,
                                          v1::ListListenersResponse* response) {
  return ListPage(
      registry_, request, AdminView::Listeners,
      [](v1::ListListenersResponse* page) { return page->mutable_listeners(); }, response);
}

absl::Status AdminHandlers::ListConnections(const v1::ListConnectionsRequest& request,
                                            v1::ListConnectionsResponse* response) {
  return ListPage(
      registry_, request, [this](const core::Session& session) { return view_.Connections(session); },
      [](v1::ListConnectionsResponse* page) { return page->mutable_connections(); }, response);
}

absl::Status AdminHandlers::ListTenants(const v1::ListTenantsRequest& /*request*/, v1::ListTenantsResponse* response) {
  for (v1::TenantInfo& tenant : view_.Tenants()) {
    *response->add_tenants() = std::move(tenant);
  }
  return absl::OkStatus();
}

absl::Status AdminHandlers::InspectSession(const v1::InspectSessionRequest& request,
                                           v1::InspectSessionResponse* response) {
  RNICD_ASSIGN_OR_RETURN(*response, view_.Inspect(SessionId{request.session_id()}));
  return absl::OkStatus();
}

absl::Status AdminHandlers::DumpState(const v1::DumpStateRequest& /*request*/, v1::DumpStateResponse* response) {
  RNICD_ASSIGN_OR_RETURN(*response->mutable_json(), ToJson(view_.Dump()));
  return absl::OkStatus();
}

// --- control ---

void AdminHandlers::EvictSession(const std::shared_ptr<gate::Call>& call, const v1::EvictSessionRequest& request,
                                 v1::EvictSessionResponse* response) {
  const auto session = registry_.Evict(SessionId{request.session_id()});
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
}

absl::Status AdminHandlers::Drain(const v1::DrainRequest& request, v1::DrainResponse* response) {
  response->set_draining(process_.SetDraining(!request.resume()));
  response->set_sessions(registry_.List().size());
  response->set_regions(node_.ledger->used(core::Resource::kRegions));
  response->set_pinned_bytes(node_.ledger->used(core::Resource::kPinnedBytes));
  return absl::OkStatus();
}

absl::Status AdminHandlers::SetLogLevel(const v1::SetLogLevelRequest& request, v1::SetLogLevelResponse* response) {
  RNICD_ASSIGN_OR_RETURN(*response->mutable_previous(), process_.SetLogLevel(request.level()));
  return absl::OkStatus();
}

absl::Status AdminHandlers::ReloadPolicy(const v1::ReloadPolicyRequest& /*request*/,
                                         v1::ReloadPolicyResponse* /*response*/) {
  return Shortened(process_.ReloadPolicy());
}

// --- grants and pods ---

// The door is made by the thread that keeps the sockets, because the file system may be slow.
void AdminHandlers::CreateGrant(const v1::CreateGrantRequest& request,
                                const gate::Reply<v1::CreateGrantResponse>& reply) {
  core::Doors* const doors = process_.doors();
  const absl::StatusOr<core::GrantTerms> terms = FromWire(request);
  if (!terms.ok() || (terms->door && doors == nullptr)) {
    reply(terms.ok() ? MakeErrorWithDetail(ErrorReason::DOOR_UNAVAILABLE, "this system has none") : terms.status());
    return;
  }
  absl::StatusOr<core::IssuedGrant> grant = node_.tenants.CreateGrant(*terms);
  if (!grant.ok()) {
    reply(grant.status());
    return;
  }
  v1::CreateGrantResponse response;
  response.set_grant_id(grant->id.value);
  response.set_secret(std::move(grant->secret));
  response.set_tenant(grant->tenant->name());
  if (!terms->door) {
    reply(response);
    return;
  }
  response.set_socket_dir(doors->DirectoryOf(grant->id));
  doors->Open(grant->tenant, [&tenants = node_.tenants, reply, response](const absl::Status& opened) {
    if (!opened.ok()) {
      (void)tenants.RevokeGrant(GrantId{response.grant_id()});
      reply(opened);
    } else {
      reply(response);
    }
  });
}

void AdminHandlers::RevokeGrant(const v1::RevokeGrantRequest& request,
                                const gate::Reply<v1::RevokeGrantResponse>& reply) {
  const GrantId id{request.grant_id()};
  const absl::StatusOr<std::shared_ptr<core::Tenant>> tenant = node_.tenants.RevokeGrant(id);
  absl::StatusOr<v1::RevokeGrantResponse> response{v1::RevokeGrantResponse()};
  if (tenant.ok()) {
    response->set_sessions_ended(registry_.EndRefusedBy(**tenant, core::EndCause::kGrantRevoked));
    process_.OnGrantNarrowed(id, "");
  } else {
    response = tenant.status();
  }
  if (core::Doors* const doors = process_.doors(); doors != nullptr) {
    doors->Close(id, [reply, response] { reply(response); });
  } else {
    reply(response);
  }
}

absl::Status AdminHandlers::BindGrant(gate::Call& call, const v1::BindGrantRequest& request,
                                      v1::BindGrantResponse* response) {
  if (!IsPodUid(request.pod_uid())) {
    return OutOfRange("pod_uid");
  }
  RNICD_ASSIGN_OR_RETURN(
      const std::shared_ptr<core::Tenant> tenant,
      node_.tenants.BindGrant(GrantId{request.grant_id()}, request.pod_uid(), call.connection().caller()));
  response->set_pod_uid(tenant->pod_uid());
  response->set_sessions_ended(registry_.EndRefusedBy(*tenant, core::EndCause::kGrantRevoked));
  if (response->pod_uid().empty()) {
    call.SetNote("unbound");
  } else {
    process_.OnGrantNarrowed(GrantId{request.grant_id()}, response->pod_uid());
  }
  return absl::OkStatus();
}

absl::Status AdminHandlers::ListGrants(const v1::ListGrantsRequest& /*request*/, v1::ListGrantsResponse* response) {
  for (v1::GrantInfo& grant : view_.Grants()) {
    *response->add_grants() = std::move(grant);
  }
  return absl::OkStatus();
}

absl::Status AdminHandlers::SetPods(const v1::SetPodsRequest& request, v1::SetPodsResponse* /*response*/) {
  RNICD_ASSIGN_OR_RETURN(std::vector<core::PodFacts> pods, FromWire(request));
  node_.tenants.SetPods(std::move(pods));
  return absl::OkStatus();
}

}  // namespace

std::vector<gate::Method> AdminMethods(core::Node& node, core::SessionRegistry& registry, ProcessControl& process) {
  using core::Row;
  using gate::Bind;
  using gate::Serve;
  const auto admin = std::make_shared<AdminHandlers>(node, registry, process);
  return {
      Serve(Row("AdminService.GetStatus"), Bind(admin, &AdminHandlers::GetStatus)),
      Serve(Row("AdminService.ListSessions"), Bind(admin, &AdminHandlers::ListSessions)),
      Serve(Row("AdminService.ListRegions"), Bind(admin, &AdminHandlers::ListRegions)),
      Serve(Row("AdminService.ListListeners"), Bind(admin, &AdminHandlers::ListListeners)),
      Serve(Row("AdminService.ListConnections"), Bind(admin, &AdminHandlers::ListConnections)),
      Serve(Row("AdminService.ListTenants"), Bind(admin, &AdminHandlers::ListTenants)),
      Serve(Row("AdminService.InspectSession"), Bind(admin, &AdminHandlers::InspectSession)),
      Serve(Row("AdminService.DumpState"), Bind(admin, &AdminHandlers::DumpState)),
      Serve(Row("AdminService.EvictSession"), Bind(admin, &AdminHandlers::EvictSession)),
      Serve(Row("AdminService.Drain"), Bind(admin, &AdminHandlers::Drain)),
      Serve(Row("AdminService.SetLogLevel"), Bind(admin, &AdminHandlers::SetLogLevel)),
      Serve(Row("AdminService.ReloadPolicy"), Bind(admin, &AdminHandlers::ReloadPolicy)),
      Serve(Row("AdminService.CreateGrant"), Bind(admin, &AdminHandlers::CreateGrant)),
      Serve(Row("AdminService.RevokeGrant"), Bind(admin, &AdminHandlers::RevokeGrant)),
      Serve(Row("AdminService.BindGrant"), Bind(admin, &AdminHandlers::BindGrant)),
      Serve(Row("AdminService.ListGrants"), Bind(admin, &AdminHandlers::ListGrants)),
      Serve(Row("AdminService.SetPods"), Bind(admin, &AdminHandlers::SetPods)),
  };
}

}  // namespace rnicd::service
