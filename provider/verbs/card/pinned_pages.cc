#include "provider/verbs/card/pinned_pages.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {
namespace {

// 64 pages: pinning them takes tens of microseconds, and a request may name as many blocks as pages.
constexpr uint64_t kBlockBytes = 64 * kNdkPageBytes;

uint64_t AddressOf(const std::byte* at) { return reinterpret_cast<uint64_t>(at); }
std::byte* PointerTo(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

absl::Status ModuleStatus(int error, uint64_t bytes) {
  if (error == 0) {
    return absl::OkStatus();
  }
  // The module's own limits.
  if (error == EDQUOT) {
    return MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  return RegistrationStatus(error, bytes, ReadPinBudget());
}

class PinnedPages::Mapping final : public DeviceMapping {
 public:
  Mapping(std::shared_ptr<PinnedPages> pages, std::vector<Range> ranges)
      : pages_(std::move(pages)), ranges_(std::move(ranges)) {}
  ~Mapping() override { pages_->Remove(ranges_); }

 private:
  const std::shared_ptr<PinnedPages> pages_;
  const std::vector<Range> ranges_;
};

PinnedPages::Range PinnedPages::PagesOf(std::span<std::byte> run) {
  const uint64_t begin = AddressOf(run.data());
  return {.begin = begin / kNdkPageBytes * kNdkPageBytes,
          .end = (begin + run.size() + kNdkPageBytes - 1) / kNdkPageBytes * kNdkPageBytes};
}

std::unique_ptr<DeviceMapping> PinnedPages::Add(std::span<const std::span<std::byte>> runs) {
  std::vector<Range> ranges;
  ranges.reserve(runs.size());
  MutexLock lock(mutex_);
  for (const std::span<std::byte> run : runs) {
    ranges.push_back(PagesOf(run));
    Change(ranges.back(), 1);
  }
  return std::make_unique<Mapping>(shared_from_this(), std::move(ranges));
}

void PinnedPages::Remove(std::span<const Range> ranges) {
  MutexLock lock(mutex_);
  for (const Range& range : ranges) {
    Change(range, -1);
  }
}

void PinnedPages::SplitAt(uint64_t address) {
  const auto next = intervals_.lower_bound(address);
  if (next == intervals_.end() || next->first != address) {
    intervals_.emplace(address, next == intervals_.begin() ? 0 : std::prev(next)->second);
  }
}

void PinnedPages::Change(const Range& range, int by) {
  SplitAt(range.begin);
  SplitAt(range.end);
  for (auto interval = intervals_.find(range.begin); interval->first != range.end; ++interval) {
    interval->second += static_cast<uint64_t>(by);
    if (interval->second == 0) {
      Forget({.begin = interval->first, .end = std::next(interval)->first});
    }
  }
  // Intervals with the same count as the one before them are redundant.
  for (auto interval = intervals_.find(range.begin); interval != intervals_.end() && interval->first <= range.end;) {
    const bool same =
        interval == intervals_.begin() ? interval->second == 0 : std::prev(interval)->second == interval->second;
    interval = same ? intervals_.erase(interval) : std::next(interval);
  }
}

void PinnedPages::Forget(const Range& range) {
  for (auto& [domain, blocks] : blocks_) {
    auto block = blocks.upper_bound(range.begin);
    if (block != blocks.begin() && PagesOf(std::prev(block)->second->bytes()).end > range.begin) {
      --block;
    }
    while (block != blocks.end() && block->first < range.end) {
      block = blocks.erase(block);
    }
  }
}

void PinnedPages::Drop(const ModuleDomain& domain) {
  MutexLock lock(mutex_);
  blocks_.erase(&domain);
}

PinnedPages::Range PinnedPages::BlockAround(uint64_t address, uint64_t end, const Blocks& blocks) const {
  auto interval = intervals_.upper_bound(address);
  if (interval == intervals_.begin() || std::prev(interval)->second == 0) {
    return {.begin = address, .end = end};
  }
  const uint64_t block = address / kBlockBytes * kBlockBytes;
  Range range{.begin = std::max(block, std::prev(interval)->first),
              .end = std::min(block + kBlockBytes, interval->first)};
  const auto next = blocks.upper_bound(address);
  if (next != blocks.end()) {
    range.end = std::min(range.end, next->first);
  }
  if (next != blocks.begin()) {
    range.begin = std::max(range.begin, PagesOf(std::prev(next)->second->bytes()).end);
  }
  return range;
}

absl::StatusOr<std::shared_ptr<const PinnedBlock>> PinnedPages::BlockOf(const std::shared_ptr<ModuleDomain>& domain,
                                                                        const Range& range) {
  Blocks& blocks = blocks_[domain.get()];
  const auto next = blocks.upper_bound(range.begin);
  if (next != blocks.begin() && PagesOf(std::prev(next)->second->bytes()).end > range.begin) {
    return std::prev(next)->second;
  }
  const Range around = BlockAround(range.begin, range.end, blocks);
  const std::span<std::byte> bytes(PointerTo(around.begin), around.end - around.begin);
  uint32_t mapping = 0;
  RNICD_RETURN_IF_ERROR(ModuleStatus(domain->module().Map(domain->file(), bytes, mapping), bytes.size()));
  auto block = std::make_shared<const PinnedBlock>(domain, bytes, mapping);
  // What no mapping has may be unmapped as soon as its registration has ended.
  const auto interval = intervals_.upper_bound(range.begin);
  if (interval != intervals_.begin() && std::prev(interval)->second != 0) {
    blocks.emplace(around.begin, block);
  }
  return block;
}

absl::Status PinnedPages::PinRange(const std::shared_ptr<ModuleDomain>& domain, Range range, PinnedRuns& out) {
  while (range.begin < range.end) {
    // Neighbours in a page list are mostly in the same block.
    Range in_block = out.blocks.empty() ? Range() : PagesOf(out.blocks.back()->bytes());
    if (range.begin < in_block.begin || range.begin >= in_block.end) {
      RNICD_ASSIGN_OR_RETURN(std::shared_ptr<const PinnedBlock> block, BlockOf(domain, range));
      in_block = PagesOf(block->bytes());
      out.blocks.push_back(std::move(block));
    }
    const uint64_t end = std::min(range.end, in_block.end);
    out.runs.push_back({.mapping = out.blocks.back()->mapping(),
                        .page = static_cast<uint32_t>((range.begin - in_block.begin) / kNdkPageBytes),
                        .count = static_cast<uint32_t>((end - range.begin) / kNdkPageBytes),
                        .reserved = 0});
    range.begin = end;
  }
  return absl::OkStatus();
}

absl::Status PinnedPages::Pin(const std::shared_ptr<ModuleDomain>& domain, std::span<const std::span<std::byte>> runs,
                              PinnedRuns& out) {
  out.runs.reserve(runs.size());
  MutexLock lock(mutex_);
  for (size_t index = 0; index < runs.size(); ++index) {
    const uint64_t begin = AddressOf(runs[index].data());
    const bool seamless = (index == 0 || begin % kNdkPageBytes == 0) &&
                          (index + 1 == runs.size() || (begin + runs[index].size()) % kNdkPageBytes == 0);
    if (!seamless) {
      return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
    }
    RNICD_RETURN_IF_ERROR(PinRange(domain, PagesOf(runs[index]), out));
  }
  return absl::OkStatus();
}

}  // namespace rnicd::provider
