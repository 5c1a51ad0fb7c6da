#pragma once

#include <vector>

#include "daemon/core/memory/ticket_table.h"
#include "daemon/gate/method.h"

namespace rnicd::service {

// Memory objects, protection domains and regions: see memory_service.proto. `tickets` outlives the methods.
std::vector<gate::Method> MemoryMethods(const core::TicketTable& tickets);

}  // namespace rnicd::service
