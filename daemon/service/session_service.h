#pragma once

#include <utility>

#include "daemon/core/session_registry.h"
#include "daemon/gate/gate.h"
#include "rnicd/v1/session_service.grpc.pb.h"

namespace rnicd::service {

// The lease itself: see session_service.proto. One per connection. Threads: safe.
class SessionService final : public v1::SessionService::CallbackService {
 public:
  // `registry` outlives the service.
  SessionService(gate::Gate gate, core::SessionRegistry& registry) : gate_(std::move(gate)), registry_(registry) {}

  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context, const v1::OpenSessionRequest* request,
                                        v1::OpenSessionResponse* response) override;
  grpc::ServerUnaryReactor* JoinSession(grpc::CallbackServerContext* context, const v1::JoinSessionRequest* request,
                                        v1::JoinSessionResponse* response) override;
  grpc::ServerUnaryReactor* GetSession(grpc::CallbackServerContext* context, const v1::GetSessionRequest* request,
                                       v1::GetSessionResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(grpc::CallbackServerContext* context,
                                                                 const v1::WatchEventsRequest* request) override;
  grpc::ServerUnaryReactor* CloseSession(grpc::CallbackServerContext* context, const v1::CloseSessionRequest* request,
                                         v1::CloseSessionResponse* response) override;

 private:
  gate::Gate gate_;
  core::SessionRegistry& registry_;
};

}  // namespace rnicd::service
