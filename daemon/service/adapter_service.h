#pragma once

#include <memory>

#include "daemon/gate/gate.h"
#include "provider/api/device.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// Cards and what they can do: see adapter_service.proto. One per connection; `provider` outlives it. Threads: safe.
std::unique_ptr<grpc::Service> MakeAdapterService(gate::Gate gate, provider::Provider& provider);

}  // namespace rnicd::service
