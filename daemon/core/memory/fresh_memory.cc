#include "daemon/core/memory/fresh_memory.h"

#include <algorithm>

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<FreshMemory> FreshMemory::Create(Os& os, uint64_t size, const PageChoice& pages) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd file, os.CreateMemoryFile(size, pages.page_bytes));
  RNICD_ASSIGN_OR_RETURN(const std::span<std::byte> mapping, os.Map(file.get(), size));
  FreshMemory memory(os, std::move(file), mapping, pages);
  if (pages.numa_node.has_value()) {
    RNICD_RETURN_IF_ERROR(os.BindToNumaNode(mapping, *pages.numa_node));
  }
  return memory;
}

FreshMemory::FreshMemory(FreshMemory&& other) noexcept
    : os_(other.os_),
      file_(std::move(other.file_)),
      mapping_(std::exchange(other.mapping_, {})),
      pages_(other.pages_),
      made_(other.made_),
      populated_(other.populated_) {}

FreshMemory& FreshMemory::operator=(FreshMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    os_ = other.os_;
    file_ = std::move(other.file_);
    mapping_ = std::exchange(other.mapping_, {});
    pages_ = other.pages_;
    made_ = other.made_;
    populated_ = other.populated_;
  }
  return *this;
}

FreshMemory::~FreshMemory() { Unmap(); }

void FreshMemory::Unmap() {
  if (!mapping_.empty()) {
    (void)os_->Unmap(mapping_);
  }
}

absl::StatusOr<bool> FreshMemory::MakeNext(uint64_t bytes) {
  bytes = std::max(bytes, pages_.page_bytes);
  if (made_ < size()) {
    const uint64_t piece = std::min(bytes, size() - made_);
    RNICD_RETURN_IF_ERROR(os_->MakePages(file_.get(), made_, piece, pages_.page_bytes));
    made_ += piece;
    return true;
  }
  if (populated_ < size()) {
    const uint64_t piece = std::min(bytes, size() - populated_);
    const uint64_t inside = populated_ % os_->page_bytes();
    RNICD_RETURN_IF_ERROR(os_->MapPages(mapping_.subspan(populated_ - inside, piece + inside)));
    populated_ += piece;
  }
  return populated_ < size();
}

absl::Status FreshMemory::FitTo(uint64_t size) {
  if (size == mapping_.size()) {
    return absl::OkStatus();
  }
  const bool longer = size > mapping_.size();
  if (longer) {
    RNICD_RETURN_IF_ERROR(os_->Resize(file_.get(), size));
  }
  RNICD_ASSIGN_OR_RETURN(mapping_, os_->Remap(mapping_, size));
  if (!longer) {
    RNICD_RETURN_IF_ERROR(os_->Resize(file_.get(), size));
  }
  made_ = std::min(made_, size);
  populated_ = std::min(populated_, size);
  // The kernel keeps a NUMA policy per part of the file, so the new part needs its own.
  return longer && pages_.numa_node.has_value() ? os_->BindToNumaNode(mapping_, *pages_.numa_node) : absl::OkStatus();
}

std::pair<UniqueFd, std::span<std::byte>> FreshMemory::TakeOver() && {
  return {std::move(file_), std::exchange(mapping_, {})};
}

}  // namespace rnicd::core
