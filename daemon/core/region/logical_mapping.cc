#include "daemon/core/region/logical_mapping.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

// Cuts the byte range out of the pages it is fed one by one. Pages that adjoin in memory become one run, which joins
// the list when it is complete.
class RunBuilder {
 public:
  RunBuilder(uint64_t skip, uint64_t length) : skip_(skip), left_(length) {}

  void Add(std::byte* page) {
    if (left_ == 0) {
      return;
    }
    const uint64_t count = std::min(kNdkPageBytes - skip_, left_);
    if (page + skip_ != end_) {
      AppendRun();
      begin_ = page + skip_;
    }
    end_ = page + skip_ + count;
    left_ -= count;
    skip_ = 0;
  }
  PageRuns Take() {
    AppendRun();
    return std::move(runs_);
  }

 private:
  void AppendRun() {
    if (begin_ != end_) {
      runs_.emplace_back(begin_, end_);
    }
  }

  uint64_t skip_;
  uint64_t left_;
  // The run that the next page may continue.
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
  PageRuns runs_;
};

// Keeps the pages of several mappings alive; one mapping needs no list.
class Keeper {
 public:
  void Add(const std::shared_ptr<const MappedPages>& pages) {
    if (first_ == nullptr) {
      first_ = pages;
    } else if (pages != first_) {
      others_.insert(pages);
    }
  }
  size_t size() const { return (first_ != nullptr ? 1 : 0) + others_.size(); }
  std::shared_ptr<const void> Take() {
    if (others_.empty()) {
      return std::move(first_);
    }
    others_.insert(std::move(first_));
    return std::make_shared<std::set<std::shared_ptr<const MappedPages>>>(std::move(others_));
  }

 private:
  std::shared_ptr<const MappedPages> first_;
  // Sorted: in a page array every page may belong to another mapping.
  std::set<std::shared_ptr<const MappedPages>> others_;
};

absl::Status Refuse(ErrorReason reason, size_t index) {
  return MakeError(reason, "adapter_page_array[" + std::to_string(index) + "]");
}

}  // namespace

absl::StatusOr<TakenPages> TakePages(MappedRange range, provider::DeviceAdapter& card,
                                     const std::shared_ptr<Ledger>& ledger) {
  if (range.pages > kMaxMappedPages) {
    return MakeError(ErrorReason::PAGE_COUNT_UNSUPPORTED, "length");
  }
  RNICD_ASSIGN_OR_RETURN(auto charges,
                         Charge::TakeAll(ledger, {{Resource::kLogicalMappings, 1},
                                                  {Resource::kLogicalPages, range.pages},
                                                  {Resource::kRegisteredBytes, range.pages * kNdkPageBytes},
                                                  {Resource::kHeapBytes, range.page_runs.size() * kHeapOfRun}}));
  auto mapped = std::make_shared<MappedPages>();
  mapped->listed = std::move(charges[1]);
  RNICD_ASSIGN_OR_RETURN(mapped->pinned,
                         PinCharge::Take(std::move(charges[2]), std::move(charges[3]), std::move(range.page_runs)));
  mapped->page_bytes = range.page_bytes;
  mapped->uses = std::move(range.uses);
  mapped->pages.reserve(range.pages);
  // Memory objects are mapped at page boundaries, so the address of a byte identifies its page.
  uint64_t skip = range.base.value % kNdkPageBytes;
  for (const std::span<std::byte> run : range.runs) {
    std::byte* const end = run.data() + run.size();
    for (std::byte* page = run.data() - skip; page < end; page += kNdkPageBytes) {
      mapped->pages.push_back(page);
    }
    skip = 0;
  }
  mapped->device = card.AddMapping(range.runs);
  return TakenPages{.mapping = std::move(charges[0]), .pages = std::move(mapped)};
}

// Far from both ends, so that neither 0 nor the end of the range is ever reached.
LogicalAddressSpace::LogicalAddressSpace(uint64_t seed)
    : next_(((uint64_t{1} << 40) + seed % (uint64_t{1} << 61)) / kNdkPageBytes * kNdkPageBytes) {}

void LogicalAddressSpace::Insert(const std::shared_ptr<LogicalMapping>& mapping) {
  MutexLock lock(mutex_);
  mapping->set_base(LogicalAddress{next_});
  // An unused page separates two mappings.
  next_ += (mapping->pages()->pages.size() + 1) * kNdkPageBytes;
  mappings_.emplace(mapping->base().value, mapping);
}

void LogicalAddressSpace::Remove(const LogicalMapping& mapping) {
  MutexLock lock(mutex_);
  mappings_.erase(mapping.base().value);
}

const LogicalMapping* LogicalAddressSpace::Find(const Adapter& adapter, uint64_t address) const {
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) {
    return nullptr;
  }
  const LogicalMapping& mapping = *std::prev(next)->second;
  const bool inside = (address - mapping.base().value) / kNdkPageBytes < mapping.pages()->pages.size();
  return inside && &mapping.adapter() == &adapter ? &mapping : nullptr;
}

absl::StatusOr<ResolvedPages> LogicalAddressSpace::ResolvePages(const Adapter& adapter, std::span<const uint64_t> pages,
                                                                uint64_t fbo, uint64_t length) const {
  RunBuilder builder(fbo, length);
  Keeper keeper;
  const LogicalMapping* mapping = nullptr;
  MutexLock lock(mutex_);
  for (size_t index = 0; index < pages.size(); ++index) {
    const uint64_t address = pages[index];
    if (address % kNdkPageBytes != 0) {
      return Refuse(ErrorReason::LOGICAL_ADDRESS_UNALIGNED, index);
    }
    // Page arrays mostly stay in one mapping.
    if (mapping == nullptr || (address - mapping->base().value) / kNdkPageBytes >= mapping->pages()->pages.size()) {
      mapping = Find(adapter, address);
      if (mapping == nullptr) {
        return Refuse(ErrorReason::LOGICAL_ADDRESS_UNKNOWN, index);
      }
      keeper.Add(mapping->pages());
    }
    builder.Add(mapping->pages()->pages[(address - mapping->base().value) / kNdkPageBytes]);
  }
  const size_t kept = keeper.size();
  return ResolvedPages{.runs = builder.Take(), .keep_alive = keeper.Take(), .kept = kept};
}

absl::StatusOr<ResolvedPages> LogicalAddressSpace::ResolveBytes(const Adapter& adapter, LogicalAddress address,
                                                                uint64_t length) const {
  MutexLock lock(mutex_);
  const LogicalMapping* mapping = Find(adapter, address.value);
  if (mapping == nullptr) {
    return MakeError(ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  }
  const std::vector<std::byte*>& pages = mapping->pages()->pages;
  const uint64_t offset = address.value - mapping->base().value;
  if (length > pages.size() * kNdkPageBytes - offset) {
    return MakeError(ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  }
  RunBuilder builder(offset % kNdkPageBytes, length);
  for (uint64_t page = offset / kNdkPageBytes; page * kNdkPageBytes < offset + length; ++page) {
    builder.Add(pages[page]);
  }
  return ResolvedPages{.runs = builder.Take(), .keep_alive = mapping->pages()};
}

}  // namespace rnicd::core
