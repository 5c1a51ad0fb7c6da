#pragma once

#include <utility>

#include "daemon/gate/gate.h"
#include "provider/api/device.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"

namespace rnicd::service {

// Cards and what they can do: see adapter_service.proto. One per connection. Threads: safe.
class AdapterService final : public v1::AdapterService::CallbackService {
 public:
  // `provider` outlives the service.
  AdapterService(gate::Gate gate, provider::Provider& provider) : gate_(std::move(gate)), provider_(provider) {}

  grpc::ServerUnaryReactor* ListAdapters(grpc::CallbackServerContext* context, const v1::ListAdaptersRequest* request,
                                         v1::ListAdaptersResponse* response) override;
  grpc::ServerUnaryReactor* OpenAdapter(grpc::CallbackServerContext* context, const v1::OpenAdapterRequest* request,
                                        v1::OpenAdapterResponse* response) override;
  grpc::ServerUnaryReactor* QueryAdapterInfo(grpc::CallbackServerContext* context,
                                             const v1::QueryAdapterInfoRequest* request,
                                             v1::QueryAdapterInfoResponse* response) override;
  grpc::ServerUnaryReactor* CloseAdapter(grpc::CallbackServerContext* context, const v1::CloseAdapterRequest* request,
                                         v1::CloseAdapterResponse* response) override;

 private:
  gate::Gate gate_;
  provider::Provider& provider_;
};

}  // namespace rnicd::service
