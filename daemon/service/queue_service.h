#pragma once

#include <memory>

#include "daemon/gate/gate.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// Completion queues, queue pairs, windows and posting: see queue_service.proto. One per connection. Threads: safe.
std::unique_ptr<grpc::Service> MakeQueueService(gate::Gate gate);

}  // namespace rnicd::service
