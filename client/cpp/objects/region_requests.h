#pragma once

#include <span>

#include "client/cpp/memory.h"
#include "rnicd/v1/memory_service.pb.h"
#include "wire/memory.h"

namespace rnicd::inline client {

// Requests of MemoryRegion, shared by its single, batch and pending forms.

inline v1::CreateMrRequest CreateRequest(ProtectionDomainId protection_domain) {
  v1::CreateMrRequest request;
  request.set_pd_id(protection_domain.value);
  return request;
}

inline v1::RegisterMrRequest RegisterRequest(MemoryRegionId region, std::span<const MdlEntry> chain, uint64_t length,
                                             uint32_t flags) {
  v1::RegisterMrRequest request;
  request.set_mr_id(region.value);
  *request.mutable_mdl_chain() = wire::ToWire(chain);
  request.set_length(length);
  request.set_flags(flags);
  return request;
}

inline v1::CloseMrRequest CloseRequest(MemoryRegionId region) {
  v1::CloseMrRequest request;
  request.set_mr_id(region.value);
  return request;
}

}  // namespace rnicd::inline client
