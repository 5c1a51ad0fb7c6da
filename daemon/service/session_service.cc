#include "daemon/service/service_methods.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/session/names.h"
#include "daemon/service/event_stream.h"
#include "daemon/service/messages/convert.h"
#include "rnicd/v1/session_service.pb.h"
#include "wire/adapter_info.h"

namespace rnicd::service {
namespace {

absl::Status OpenSession(gate::Call& call, const v1::OpenSessionRequest& request, v1::OpenSessionResponse* response) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<core::Session> session,
                         call.connection().OpenSession(request.label(), request.grant()));
  response->set_session_id(session->id().value);
  *response->mutable_ndk_version() = wire::ToWire(core::kNdkVersion);
  response->set_fd_socket_name(core::kFdSocketName);
  response->set_tenant(session->tenant().name());
  return absl::OkStatus();
}

absl::Status JoinSession(gate::Call& call, const v1::JoinSessionRequest& request,
                         v1::JoinSessionResponse* /*response*/) {
  return call.connection().JoinSession(SessionId{request.session_id()}).status();
}

absl::Status GetSession(gate::Call& call, const v1::GetSessionRequest& /*request*/, v1::GetSessionResponse* response) {
  const core::Session& session = *call.session();
  response->set_session_id(session.id().value);
  response->set_label(session.label());
  ToWire(session.ledger(), response->mutable_resources());
  response->set_tenant(session.tenant().name());
  ToWire(*session.tenant().ledger(), response->mutable_tenant_resources());
  return absl::OkStatus();
}

void CloseSession(core::SessionRegistry& registry, const std::shared_ptr<gate::Call>& call,
                  v1::CloseSessionResponse* response) {
  registry.End(call->session(), core::EndCause::kClosed, [call, response](const core::Reclaimed& reclaimed) {
    call->Finish(absl::OkStatus(), [&] {
      response->set_reclaimed_regions(reclaimed.regions);
      response->set_reclaimed_pinned_bytes(reclaimed.pinned_bytes);
      response->set_reclaimed_memory_bytes(reclaimed.memory_bytes);
    });
  });
}

}  // namespace

std::vector<gate::Method> SessionMethods(core::SessionRegistry& registry) {
  using core::Row;
  using gate::Serve;
  return {
      Serve(Row("SessionService.OpenSession"), OpenSession),
      Serve(Row("SessionService.JoinSession"), JoinSession),
      Serve(Row("SessionService.GetSession"), GetSession),
      Serve(Row("SessionService.WatchEvents"), WatchEvents),
      Serve(Row("SessionService.CloseSession"),
            [&registry](const std::shared_ptr<gate::Call>& call, const v1::CloseSessionRequest&,
                        v1::CloseSessionResponse* response) { CloseSession(registry, call, response); }),
  };
}

}  // namespace rnicd::service
