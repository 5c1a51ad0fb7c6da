#include "daemon/service/session_service.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/names.h"
#include "daemon/service/convert.h"
#include "daemon/service/event_stream.h"
#include "daemon/service/refused_stream.h"
#include "daemon/service/unary.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::service {
namespace {

class SessionService final : public v1::SessionService::CallbackService {
 public:
  SessionService(gate::Gate gate, core::SessionRegistry& registry) : gate_(std::move(gate)), registry_(registry) {}

  RNICD_UNARY(OpenSession)
  RNICD_UNARY(JoinSession)
  RNICD_UNARY(GetSession)
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(grpc::CallbackServerContext* context,
                                                                 const v1::WatchEventsRequest* request) override;
  RNICD_UNARY(CloseSession)

 private:
  gate::Gate gate_;
  core::SessionRegistry& registry_;
};

}  // namespace

grpc::ServerUnaryReactor* SessionService::OpenSession(grpc::CallbackServerContext* /*context*/,
                                                      const v1::OpenSessionRequest* request,
                                                      v1::OpenSessionResponse* response) {
  return gate_.Unary(gate::Row("SessionService.OpenSession"), request, response, [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<core::Session> session,
                           call.connection().OpenSession(request->label(), request->grant()));
    response->set_session_id(session->id().value);
    *response->mutable_ndk_version() = ToWire(core::kNdkVersion);
    response->set_fd_socket_name(core::kFdSocketName);
    response->set_tenant(session->tenant().name());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* SessionService::JoinSession(grpc::CallbackServerContext* /*context*/,
                                                      const v1::JoinSessionRequest* request,
                                                      v1::JoinSessionResponse* response) {
  return gate_.Unary(gate::Row("SessionService.JoinSession"), request, response, [&](gate::Call& call) {
    return call.connection().JoinSession(SessionId{request->session_id()}).status();
  });
}

grpc::ServerUnaryReactor* SessionService::GetSession(grpc::CallbackServerContext* /*context*/,
                                                     const v1::GetSessionRequest* request,
                                                     v1::GetSessionResponse* response) {
  return gate_.Unary(gate::Row("SessionService.GetSession"), request, response, [&](gate::Call& call) {
    const core::Session& session = *call.session();
    response->set_session_id(session.id().value);
    response->set_label(session.label());
    ToWire(session.ledger(), response->mutable_resources());
    response->set_tenant(session.tenant().name());
    ToWire(*session.tenant().ledger(), response->mutable_tenant_resources());
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* SessionService::WatchEvents(grpc::CallbackServerContext* /*context*/,
                                                                               const v1::WatchEventsRequest* request) {
  using Reactor = grpc::ServerWriteReactor<v1::WatchEventsResponse>;
  return gate_.Stream(
      gate::Row("SessionService.WatchEvents"), request,
      [](const std::shared_ptr<gate::Call>& call) -> Reactor* { return new EventStream(call); },
      [](const std::shared_ptr<gate::Call>& call) { return new RefusedStream<v1::WatchEventsResponse>(call); });
}

grpc::ServerUnaryReactor* SessionService::CloseSession(grpc::CallbackServerContext* /*context*/,
                                                       const v1::CloseSessionRequest* request,
                                                       v1::CloseSessionResponse* response) {
  return gate_.UnaryAsync(gate::Row("SessionService.CloseSession"), request, response,
                          [this, response](const std::shared_ptr<gate::Call>& call) {
                            registry_.End(call->session(), core::EndCause::kClosed,
                                          [call, response](const core::Reclaimed& reclaimed) {
                                            call->Finish(absl::OkStatus(), [&] {
                                              response->set_reclaimed_regions(reclaimed.regions);
                                              response->set_reclaimed_pinned_bytes(reclaimed.pinned_bytes);
                                              response->set_reclaimed_memory_bytes(reclaimed.memory_bytes);
                                            });
                                          });
                          });
}

std::unique_ptr<grpc::Service> MakeSessionService(gate::Gate gate, core::SessionRegistry& registry) {
  return std::make_unique<SessionService>(std::move(gate), registry);
}

}  // namespace rnicd::service
