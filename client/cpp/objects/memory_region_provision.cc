#include <utility>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/objects/attached_memory.h"
#include "client/cpp/objects/batch_outcomes.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {
namespace {

v1::ProvisionMemoryRequest ProvisionRequest(const Memory& memory, ProtectionDomainId domain,
                                            std::span<const RegionRange> ranges) {
  v1::ProvisionMemoryRequest request;
  request.set_memory_id(memory.id().value);
  request.set_pd_id(domain.value);
  request.mutable_items()->Reserve(static_cast<int>(ranges.size()));
  for (const RegionRange& range : ranges) {
    v1::ProvisionRange* const item = request.add_items();
    item->set_byte_offset(range.offset);
    item->set_length(range.length);
    item->set_virtual_address(memory.address().value + range.offset);
    item->set_flags(range.flags);
  }
  return request;
}

}  // namespace

absl::StatusOr<Provisioned> MemoryRegion::Provision(const Client& client, const AllocateOptions& options,
                                                    std::span<const RegionRange> ranges) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<AttachedMemory> attached,
                         AttachedMemory::AllocateUnsealed(client.connection(), options));
  Memory memory(std::move(attached));
  RNICD_ASSIGN_OR_RETURN(Outcomes regions, Provision(memory, ranges));
  return Provisioned{.memory = std::move(memory), .regions = std::move(regions)};
}

absl::StatusOr<MemoryRegion::Outcomes> MemoryRegion::Provision(const Memory& memory,
                                                               std::span<const RegionRange> ranges) {
  const std::shared_ptr<Connection> connection = memory.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, connection->ProtectionDomain());
  RNICD_ASSIGN_OR_RETURN(const v1::ProvisionMemoryResponse response,
                         connection->Call(kProvisionMemory, ProvisionRequest(memory, domain, ranges)));
  RNICD_RETURN_IF_ERROR(CheckOutcomeCount(response, ranges.size()));
  memory.attached_->SetPageSize(response.page_size());
  Outcomes regions;
  regions.reserve(ranges.size());
  for (size_t index = 0; index < ranges.size(); ++index) {
    const v1::ProvisionOutcome& outcome = response.outcomes(static_cast<int>(index));
    if (outcome.has_error()) {
      regions.emplace_back(FailureOf(outcome.error()));
      continue;
    }
    MemoryRegion region(connection, MemoryRegionId{outcome.mr_id()});
    region.registered_ = true;
    region.registration_ = {.base_address = {memory.address().value + ranges[index].offset},
                            .length = ranges[index].length,
                            .local_token = {outcome.local_token()},
                            .remote_token = {outcome.remote_token()}};
    region.memory_.push_back(memory.attached_);
    regions.emplace_back(std::move(region));
  }
  return regions;
}

}  // namespace rnicd::inline client
