#include "daemon/core/memory/mdl_chain.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/checked_range.h"
#include "base/status.h"

namespace rnicd::core {
namespace {

// Walks a chain once; every method concerns the current entry.
class ChainWalk {
 public:
  ChainWalk(std::span<const MdlEntry> chain, uint64_t length, const MemoryLookup& find_memory)
      : chain_(chain), length_(length), find_memory_(find_memory) {}

  absl::StatusOr<MappedRange> Run() {
    range_.base = chain_.front().virtual_address;
    range_.length = length_;
    for (index_ = 0; index_ < chain_.size(); ++index_) {
      RNICD_RETURN_IF_ERROR(CheckNumbers());
      RNICD_RETURN_IF_ERROR(EnterMemory());
      if (covered_ < length_) {
        RNICD_RETURN_IF_ERROR(CheckFollowsPrevious());
        RNICD_RETURN_IF_ERROR(CheckNothingBesideADmabuf());
        Append();
      }
    }
    if (covered_ < length_) {
      return MakeError(ErrorReason::LENGTH_ABOVE_CHAIN, "length");
    }
    range_.pages = PagesTouched(*CheckedRange::Make(range_.base.value, length_), kNdkPageBytes);
    return std::move(range_);
  }

 private:
  const MdlEntry& entry() const { return chain_[index_]; }

  absl::Status Refuse(ErrorReason reason, std::string_view member) const {
    return MakeError(reason, "mdl_chain[" + std::to_string(index_) + "]." + std::string(member));
  }

  // Checks that do not need the memory object.
  absl::Status CheckNumbers() const {
    if (entry().byte_count == 0) {
      return Refuse(ErrorReason::MDL_ENTRY_EMPTY, "byte_count");
    }
    if (entry().virtual_address.value == 0) {
      return Refuse(ErrorReason::MDL_ADDRESS_ZERO, "virtual_address");
    }
    if (!CheckedRange::Make(entry().virtual_address.value, entry().byte_count).has_value()) {
      return Refuse(ErrorReason::MDL_RANGE_OVERFLOW, "virtual_address");
    }
    if (!CheckedRange::Make(entry().byte_offset, entry().byte_count).has_value()) {
      return Refuse(ErrorReason::MDL_RANGE_OVERFLOW, "byte_offset");
    }
    if (entry().virtual_address.value % kNdkPageBytes != entry().byte_offset % kNdkPageBytes) {
      return Refuse(ErrorReason::MDL_NOT_PAGE_CONGRUENT, "byte_offset");
    }
    return absl::OkStatus();
  }

  // Long chains mostly stay in one object, so the last one is cached.
  absl::Status EnterMemory() {
    if (index_ == 0 || entry().memory_id != chain_[index_ - 1].memory_id) {
      memory_ = find_memory_(entry().memory_id);
      if (memory_ == nullptr) {
        return Refuse(ErrorReason::OBJECT_NOT_FOUND, "memory_id");
      }
      RNICD_RETURN_IF_ERROR(Hold());
    }
    if (!CheckedRange::Make(0, memory_->size())->Contains(entry().byte_offset, entry().byte_count)) {
      return Refuse(ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "byte_count");
    }
    return absl::OkStatus();
  }

  absl::Status Hold() {
    const auto is_memory = [this](const MemoryObject::Use& use) { return &use.object() == memory_.get(); };
    if (std::any_of(range_.uses.begin(), range_.uses.end(), is_memory)) {
      return absl::OkStatus();
    }
    absl::StatusOr<MemoryObject::Use> use = memory_->BeginUse();
    if (!use.ok()) {
      return Refuse(ErrorInfoOf(use.status()).reason, "memory_id");
    }
    range_.uses.push_back(*std::move(use));
    const uint64_t page_bytes = memory_->page_bytes();
    range_.page_bytes = range_.page_bytes == 0 ? page_bytes : std::min(range_.page_bytes, page_bytes);
    return absl::OkStatus();
  }

  bool AdjoinsPrevious() const {
    const MdlEntry& previous = chain_[index_ - 1];
    return previous.memory_id == entry().memory_id && previous.byte_offset + previous.byte_count == entry().byte_offset;
  }

  absl::Status CheckFollowsPrevious() const {
    if (index_ == 0) {
      return absl::OkStatus();
    }
    const MdlEntry& previous = chain_[index_ - 1];
    if (entry().virtual_address.value - previous.virtual_address.value != previous.byte_count) {
      return Refuse(ErrorReason::MDL_CHAIN_GAP, "virtual_address");
    }
    // A card maps whole pages: two pieces of memory cannot share one.
    if (!AdjoinsPrevious() && entry().virtual_address.value % kNdkPageBytes != 0) {
      return Refuse(ErrorReason::MDL_NOT_PAGE_CONGRUENT, "virtual_address");
    }
    return absl::OkStatus();
  }

  // A card registers one contiguous part of one dma-buf at a time.
  absl::Status CheckNothingBesideADmabuf() const {
    if (index_ == 0 || AdjoinsPrevious() || (!memory_->is_dmabuf() && !range_.dmabuf.has_value())) {
      return absl::OkStatus();
    }
    const ErrorInfo info = ErrorInfoOf(Refuse(ErrorReason::DEVICE_NOT_CAPABLE, "memory_id"));
    return MakeErrorWithDetail(info, "one contiguous part of one dma-buf can be registered, and nothing beside it");
  }

  void Append() {
    const uint64_t count = std::min(entry().byte_count, length_ - covered_);
    AppendRun(count);
    AppendPages(entry().byte_offset, count);
    covered_ += count;
  }

  void AppendRun(uint64_t count) {
    const bool adjoins = index_ > 0 && AdjoinsPrevious();
    if (memory_->is_dmabuf()) {
      if (!adjoins) {
        range_.dmabuf = DmabufPart{.file = memory_->file(), .offset = entry().byte_offset};
      }
    } else if (adjoins) {
      std::span<std::byte>& last = range_.runs.back();
      last = std::span(last.data(), last.size() + count);
    } else {
      range_.runs.push_back(memory_->mapping().subspan(entry().byte_offset, count));
    }
  }

  // Two entries may share the page at their seam, which is one page.
  void AppendPages(uint64_t offset, uint64_t count) {
    const uint64_t first = offset / kNdkPageBytes;
    const uint64_t end = (offset + count - 1) / kNdkPageBytes + 1;
    if (index_ > 0 && AdjoinsPrevious()) {
      PageRun& last = range_.page_runs.back();
      last.count = end - last.first;
    } else {
      range_.page_runs.push_back({.file = memory_->pins(), .first = first, .count = end - first});
    }
  }

  const std::span<const MdlEntry> chain_;
  const uint64_t length_;
  const MemoryLookup& find_memory_;
  size_t index_ = 0;
  // Bytes of length_ that the entries so far cover.
  uint64_t covered_ = 0;
  std::shared_ptr<MemoryObject> memory_;
  MappedRange range_;
};

}  // namespace

absl::StatusOr<MappedRange> ResolveMdlChain(std::span<const MdlEntry> chain, uint64_t length,
                                            const MemoryLookup& find_memory) {
  if (length == 0) {
    return MakeError(ErrorReason::LENGTH_ZERO, "length");
  }
  if (chain.empty()) {
    return MakeError(ErrorReason::MDL_CHAIN_EMPTY, "mdl_chain");
  }
  if (chain.size() > kMaxMdlEntries) {
    return MakeError(ErrorReason::MDL_CHAIN_TOO_LONG, "mdl_chain");
  }
  return ChainWalk(chain, length, find_memory).Run();
}

}  // namespace rnicd::core
