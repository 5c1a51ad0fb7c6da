#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::core {

// A range of a memory object that becomes a region of its own.
struct ProvisionRange {
  uint64_t byte_offset = 0;
  uint64_t length = 0;
  // Address of the first byte as its owner knows it.
  VirtualAddress address;
  // NDK_MR_FLAG_ bits, not yet checked.
  uint32_t flags = 0;
};

struct ProvisionArguments {
  MemoryObjectId memory;
  ProtectionDomainId domain;
  std::vector<ProvisionRange> ranges;
};

struct ProvisionedRegion {
  MemoryRegionId id;
  LocalToken local_token;
  RemoteToken remote_token;
};

// The outcomes of a provisioning, one for each range in their order.
struct Provisioned {
  // Bytes of the memory object, and of one of its pages.
  uint64_t size = 0;
  uint64_t page_bytes = 0;
  std::vector<absl::StatusOr<ProvisionedRegion>> outcomes;
};

}  // namespace rnicd::core
