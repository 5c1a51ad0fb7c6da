#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "provider/api/device.h"
#include "provider/verbs/card/fast_module.h"

namespace rnicd::provider {

// Neighbouring pages that the module has pinned and mapped for the card.
// Lifetime: shared by the table and the registrations that use it; the destructor ends the mapping.
class PinnedBlock {
 public:
  PinnedBlock(std::shared_ptr<ModuleDomain> domain, std::span<std::byte> bytes, uint32_t mapping)
      : domain_(std::move(domain)), bytes_(bytes), mapping_(mapping) {}
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock() { domain_->module().Unmap(domain_->file(), mapping_); }

  std::span<std::byte> bytes() const { return bytes_; }
  uint32_t mapping() const { return mapping_; }

 private:
  const std::shared_ptr<ModuleDomain> domain_;
  const std::span<std::byte> bytes_;
  const uint32_t mapping_;
};

// Runs of bytes as the module wants them, and the blocks that keep them pinned. Few need no allocation.
struct PinnedRuns {
  absl::InlinedVector<rnicd_fr_run, 4> runs;
  absl::InlinedVector<std::shared_ptr<const PinnedBlock>, 2> blocks;
};

// The logical mappings of one opening of a card, and the parts of them that the module has pinned, for each domain. A
// part is pinned when a registration first names a page of it, and as long as a mapping of the owner has it, so that
// later registrations cost no pinning. Blocks are small because the thread that posts the request pins them.
//
// Bytes that no mapping has are pinned for their registration only.
// Threads: safe. The lock is held while pages are pinned and released.
class PinnedPages : public std::enable_shared_from_this<PinnedPages> {
 public:
  // The runs may be named until the result is destroyed. They stay mapped until then, and as long as a registration
  // uses them.
  std::unique_ptr<DeviceMapping> Add(std::span<const std::span<std::byte>> runs);

  // Pins what is not pinned yet. All runs but the first begin, and all but the last end, at a page boundary.
  // Errors: DEVICE_NOT_CAPABLE for other seams; those of ModuleStatus.
  absl::Status Pin(const std::shared_ptr<ModuleDomain>& domain, std::span<const std::span<std::byte>> runs,
                   PinnedRuns& out);
  // Forgets the domain's blocks. Must be called before the domain is freed, when no request uses it any more.
  void Drop(const ModuleDomain& domain);

 private:
  class Mapping;
  // Key: the address of the first byte. They do not overlap.
  using Blocks = absl::btree_map<uint64_t, std::shared_ptr<const PinnedBlock>>;
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  static Range PagesOf(std::span<std::byte> run);

  void Remove(std::span<const Range> ranges);
  // Makes `address` the begin of an interval.
  void SplitAt(uint64_t address) RNICD_REQUIRES(mutex_);
  void Change(const Range& range, int by) RNICD_REQUIRES(mutex_);
  void Forget(const Range& range) RNICD_REQUIRES(mutex_);
  // The block that has the first page; pinned now if there is none.
  absl::StatusOr<std::shared_ptr<const PinnedBlock>> BlockOf(const std::shared_ptr<ModuleDomain>& domain,
                                                             const Range& range) RNICD_REQUIRES(mutex_);
  absl::Status PinRange(const std::shared_ptr<ModuleDomain>& domain, Range range, PinnedRuns& out)
      RNICD_REQUIRES(mutex_);
  // The block that a page at this address should be part of.
  Range BlockAround(uint64_t address, uint64_t end, const Blocks& blocks) const RNICD_REQUIRES(mutex_);

  Mutex mutex_;
  // Number of mappings that have the bytes from this address to the next.
  absl::btree_map<uint64_t, uint64_t> intervals_ RNICD_GUARDED_BY(mutex_);
  std::map<const ModuleDomain*, Blocks> blocks_ RNICD_GUARDED_BY(mutex_);
};

// The error of a request to the module. Errors: DEVICE_MEMLOCK_LIMIT, MEMORY_NOT_PINNABLE, DEVICE_OUT_OF_RESOURCES,
// DEVICE_REMOVED, DEVICE_NOT_CAPABLE, DEVICE_FAILED.
absl::Status ModuleStatus(int error, uint64_t bytes);

}  // namespace rnicd::provider
