#include "daemon/service/session_service.h"

#include "base/status.h"
#include "daemon/core/names.h"
#include "daemon/service/convert.h"
#include "daemon/service/event_stream.h"

namespace rnicd::service {

grpc::ServerUnaryReactor* SessionService::OpenSession(grpc::CallbackServerContext* context,
                                                      const v1::OpenSessionRequest* request,
                                                      v1::OpenSessionResponse* response) {
  return gate_.Unary(context, gate::Row("SessionService.OpenSession"), [&](gate::Call& call) -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<core::Session> session,
                           call.connection().OpenSession(request->label()));
    response->set_session_id(session->id().value);
    *response->mutable_ndk_version() = ToWire(core::kNdkVersion);
    response->set_fd_socket_name(core::kFdSocketName);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* SessionService::JoinSession(grpc::CallbackServerContext* context,
                                                      const v1::JoinSessionRequest* request,
                                                      v1::JoinSessionResponse* /*response*/) {
  return gate_.Unary(context, gate::Row("SessionService.JoinSession"), [&](gate::Call& call) {
    return call.connection().JoinSession(SessionId{request->session_id()}).status();
  });
}

grpc::ServerUnaryReactor* SessionService::GetSession(grpc::CallbackServerContext* context,
                                                     const v1::GetSessionRequest* /*request*/,
                                                     v1::GetSessionResponse* response) {
  return gate_.Unary(context, gate::Row("SessionService.GetSession"), [&](gate::Call& call) {
    response->set_session_id(call.session()->id().value);
    response->set_label(call.session()->label());
    ToWire(call.session()->ledger(), response->mutable_resources());
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* SessionService::WatchEvents(
    grpc::CallbackServerContext* /*context*/, const v1::WatchEventsRequest* /*request*/) {
  using Reactor = grpc::ServerWriteReactor<v1::WatchEventsResponse>;
  return gate_.Stream(
      gate::Row("SessionService.WatchEvents"),
      [](const std::shared_ptr<gate::Call>& call) -> Reactor* { return new EventStream(call); },
      [](const grpc::Status& status) -> Reactor* { return new RefusedStream(status); });
}

grpc::ServerUnaryReactor* SessionService::CloseSession(grpc::CallbackServerContext* context,
                                                       const v1::CloseSessionRequest* /*request*/,
                                                       v1::CloseSessionResponse* response) {
  return gate_.UnaryAsync(
      context, gate::Row("SessionService.CloseSession"), [this, response](const std::shared_ptr<gate::Call>& call) {
        registry_.End(call->session(), core::EndCause::kClosed, [call, response](const core::Reclaimed& reclaimed) {
          call->Finish(absl::OkStatus(), [&] {
            response->set_reclaimed_regions(reclaimed.regions);
            response->set_reclaimed_pinned_bytes(reclaimed.pinned_bytes);
            response->set_reclaimed_memory_bytes(reclaimed.memory_bytes);
          });
        });
      });
}

}  // namespace rnicd::service
