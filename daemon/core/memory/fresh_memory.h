#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd::core {

// The pages that memory is asked for in; kNdkPageBytes means the kernel's smallest.
struct PageChoice {
  uint64_t page_bytes = kNdkPageBytes;
  // Absent: any.
  std::optional<uint32_t> numa_node;
};

// A memory file of the daemon that no client has yet: not sealed, mapped whole, and populated from its start up to
// populated().
// Lifetime: unmaps and closes; outlived by the Os.
// Threads: one at a time.
class FreshMemory {
 public:
  // Without pages. Errors: MEMORY_PAGES_UNAVAILABLE, NUMA_NODE_UNKNOWN, those of the system calls.
  static absl::StatusOr<FreshMemory> Create(Os& os, uint64_t size, const PageChoice& pages);
  FreshMemory(FreshMemory&& other) noexcept;
  FreshMemory& operator=(FreshMemory&& other) noexcept;
  ~FreshMemory();

  uint64_t size() const { return mapping_.size(); }
  const PageChoice& pages() const { return pages_; }
  // Bytes from the start that are populated.
  uint64_t populated() const { return populated_; }
  int file() const { return file_.get(); }
  std::span<std::byte> mapping() const { return mapping_; }

  // Requests transparent huge pages for the pages not made yet; false where the kernel has none.
  bool AdviseHugePages() { return os_->AdviseHugePages(mapping_); }
  // Makes pages of about `bytes`, in a way that delays no other thread; a further call maps them. False when all pages
  // are made and mapped. Errors: MEMORY_PAGES_UNAVAILABLE, with the existing pages unchanged.
  absl::StatusOr<bool> MakeNext(uint64_t bytes);
  // Cuts it, or makes it longer; the new part has no pages. Errors: those of the system calls; then it must not be used
  // any more.
  absl::Status FitTo(uint64_t size);
  // The file and its mapping, which the caller closes and unmaps.
  std::pair<UniqueFd, std::span<std::byte>> TakeOver() &&;

 private:
  FreshMemory(Os& os, UniqueFd file, std::span<std::byte> mapping, const PageChoice& pages)
      : os_(&os), file_(std::move(file)), mapping_(mapping), pages_(pages) {}
  void Unmap();

  Os* os_;
  UniqueFd file_;
  std::span<std::byte> mapping_;
  PageChoice pages_;
  // Bytes from the start whose pages exist; of these `populated_` are mapped.
  uint64_t made_ = 0;
  uint64_t populated_ = 0;
};

}  // namespace rnicd::core
