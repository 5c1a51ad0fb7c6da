#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd {

// The real kernel, except that chosen calls fail, that chosen memory files are reported as dma-bufs, for which few
// machines have an exporter, and that its pages may be larger. For tests of error branches.
// Threads: safe.
class FaultyOs final : public Os {
 public:
  explicit FaultyOs(Os& real) : real_(real) {}

  // The next `count` calls of the method of this name ("Map", "Populate", ...) fail with `failure` and do nothing.
  void FailNext(const std::string& method, absl::Status failure, uint64_t count);
  // From now on this memory file is a dma-buf of the same size: it has no seals, and cannot be mapped here.
  void ReportAsDmabuf(int fd);
  // Files of large pages are made of small ones from now on, so that a test needs no large pages of the machine's.
  void UseSmallPages() { small_pages_ = true; }
  // A kernel with pages of `bytes`, a multiple of the real ones: mappings begin at such pages, calls on others fail as
  // those of that kernel, and files are populated by whole ones. To be called before everything else.
  void UseKernelPages(uint64_t bytes) { kernel_page_bytes_ = bytes; }
  // Number of mappings made and not yet unmapped, for tests that detect leaks.
  uint64_t live_mappings() const;

  uint64_t page_bytes() const override { return kernel_page_bytes_ != 0 ? kernel_page_bytes_ : real_.page_bytes(); }
  absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) override;
  absl::StatusOr<MemoryFileFacts> Inspect(int fd) override;
  absl::Status AddSeals(int fd, const Seals& seals) override;
  absl::StatusOr<UniqueFd> Duplicate(int fd) override;
  absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) override;
  absl::Status Unmap(std::span<std::byte> mapping) override;
  absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) override;
  absl::Status Populate(std::span<std::byte> mapping) override;
  absl::Status Resize(int fd, uint64_t size) override;
  absl::StatusOr<std::span<std::byte>> Remap(std::span<std::byte> mapping, uint64_t size) override;
  absl::Status Reserve(int fd, uint64_t offset, uint64_t bytes) override;
  absl::Status MakePages(int fd, uint64_t offset, uint64_t bytes, uint64_t page_bytes) override;
  absl::Status MapPages(std::span<std::byte> mapping) override;
  bool AdviseHugePages(std::span<std::byte> mapping) override;

 private:
  struct Fault {
    absl::Status failure;
    uint64_t remaining = 0;
  };

  // The failure this call must report, or ok.
  absl::Status TakeFault(const std::string& method);
  bool IsDmabuf(const MemoryFileFacts& facts) const;
  bool IsDmabuf(int fd) const;

  // EINVAL for a range that does not begin at a page of the kernel's.
  absl::Status RequirePage(std::span<std::byte> range, const char* call) const;
  // Moves a mapping to where that kernel would have placed it.
  absl::StatusOr<std::span<std::byte>> PlaceAtPage(std::span<std::byte> mapping) const;

  uint64_t PageBytesOf(uint64_t wanted) const { return small_pages_ ? kNdkPageBytes : wanted; }

  Os& real_;
  std::atomic<bool> small_pages_{false};
  // 0: those of the real kernel.
  uint64_t kernel_page_bytes_ = 0;
  mutable Mutex mutex_;
  std::map<std::string, Fault> faults_ RNICD_GUARDED_BY(mutex_);
  uint64_t live_mappings_ RNICD_GUARDED_BY(mutex_) = 0;
  // Device and inode of each.
  std::set<std::pair<uint64_t, uint64_t>> dmabufs_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd
