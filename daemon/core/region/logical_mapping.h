#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// 1 GiB, so that the response with its page array fits into one message.
inline constexpr uint64_t kMaxMappedPages = uint64_t{1} << 18;

// Pages of a mapping: kept, and charged, until neither the mapping nor any registration or request uses them.
struct MappedPages {
  // First, so that it is destroyed last: the memory may be released before the pages count as free, never the other way
  // round.
  PinCharge pinned;
  // For the list of pages.
  Charge listed;
  // The smallest page behind the range, in bytes.
  uint64_t page_bytes = 0;
  std::vector<std::byte*> pages;
  std::vector<MemoryObject::Use> uses;
  // The card's own object for the pages, if it has one. Last, so that the card releases the pages first.
  std::unique_ptr<provider::DeviceMapping> device;
};

// A logical address mapping: the pages behind an MDL chain under addresses of the adapter.
// Lifetime: holds its adapter open until it is released.
// Source:   NDK_LOGICAL_ADDRESS_MAPPING.
class LogicalMapping {
 public:
  LogicalMapping(Kept<Adapter> adapter, Charge charge, std::shared_ptr<const MappedPages> pages, uint32_t fbo)
      : adapter_(std::move(adapter)), charge_(std::move(charge)), pages_(std::move(pages)), fbo_(fbo) {}

  const Adapter& adapter() const { return *adapter_; }
  const std::shared_ptr<const MappedPages>& pages() const { return pages_; }
  // Offset of the range in the first page, in bytes.
  uint32_t fbo() const { return fbo_; }
  // Set once, before any other thread can find the mapping.
  LogicalAddress base() const { return base_; }
  void set_base(LogicalAddress base) { base_ = base; }

 private:
  const Kept<Adapter> adapter_;
  const Charge charge_;
  const std::shared_ptr<const MappedPages> pages_;
  const uint32_t fbo_;
  LogicalAddress base_;
};

// Pages behind a range, and the charge of the mapping that lists them.
struct TakenPages {
  Charge mapping;
  std::shared_ptr<const MappedPages> pages;
};

// Charges a mapping and the pages behind a checked range, and announces them to the card. Errors:
// PAGE_COUNT_UNSUPPORTED, QUOTA_LOGICAL_MAPPINGS, QUOTA_LOGICAL_PAGES, QUOTA_REGISTERED_BYTES, QUOTA_HEAP_BYTES,
// QUOTA_PINNED_BYTES.
absl::StatusOr<TakenPages> TakePages(MappedRange range, provider::DeviceAdapter& card,
                                     const std::shared_ptr<Ledger>& ledger);

// Pages mostly adjoin: few requests have more than four runs.
using PageRuns = absl::InlinedVector<std::span<std::byte>, 4>;

// Host bytes in order, and the owners that keep them alive.
struct ResolvedPages {
  PageRuns runs;
  std::shared_ptr<const void> keep_alive;
  // Number of lists that the owners consist of.
  size_t kept = 1;
};

// The logical addresses of one session. They begin at a random place and are never reused, so that a released or
// foreign address resolves to nothing.
// Threads: safe.
class LogicalAddressSpace {
 public:
  // `seed`: any random number.
  explicit LogicalAddressSpace(uint64_t seed);

  void Insert(const std::shared_ptr<LogicalMapping>& mapping);
  void Remove(const LogicalMapping& mapping);

  // Resolves `length` bytes from byte `fbo` of the first page on, over pages in any order. All pages are checked, those
  // beyond the length too. Errors: LOGICAL_ADDRESS_UNALIGNED, LOGICAL_ADDRESS_UNKNOWN with the field
  // "adapter_page_array[N]".
  absl::StatusOr<ResolvedPages> ResolvePages(const Adapter& adapter, std::span<const uint64_t> pages, uint64_t fbo,
                                             uint64_t length) const;
  // Resolves `length` bytes within one mapping. Errors: LOGICAL_ADDRESS_UNKNOWN.
  absl::StatusOr<ResolvedPages> ResolveBytes(const Adapter& adapter, LogicalAddress address, uint64_t length) const;

 private:
  // Null when no mapping of the adapter contains the address.
  const LogicalMapping* Find(const Adapter& adapter, uint64_t address) const RNICD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  uint64_t next_ RNICD_GUARDED_BY(mutex_);
  // Mappings by base address.
  std::map<uint64_t, std::shared_ptr<LogicalMapping>> mappings_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
