#pragma once

#include <memory>

#include "daemon/core/session/session.h"
#include "daemon/gate/call.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::service {

// The handler of MemoryService.ProvisionMemory: see memory_service.proto.
void ProvisionMemory(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session,
                     const v1::ProvisionMemoryRequest& request, v1::ProvisionMemoryResponse* response);

}  // namespace rnicd::service
