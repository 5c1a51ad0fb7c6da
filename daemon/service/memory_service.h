#pragma once

#include <memory>

#include "daemon/core/session.h"
#include "daemon/core/ticket_table.h"
#include "daemon/gate/gate.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace rnicd::service {

// Memory objects, protection domains and regions: see memory_service.proto. One per connection; `tickets` outlives it.
// Threads: safe.
std::unique_ptr<grpc::Service> MakeMemoryService(gate::Gate gate, const core::TicketTable& tickets);

}  // namespace rnicd::service
