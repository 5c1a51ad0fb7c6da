#pragma once

#include <span>

#include "client/cpp/memory.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::inline client {

// Builds the requests of MemoryRegion, shared by its single, batch and pending forms.
v1::CreateMrRequest CreateRequest(ProtectionDomainId protection_domain);
v1::RegisterMrRequest RegisterRequest(MemoryRegionId region, std::span<const MdlEntry> chain, uint64_t length,
                                      uint32_t flags);
v1::CloseMrRequest CloseRequest(MemoryRegionId region);

}  // namespace rnicd::inline client
