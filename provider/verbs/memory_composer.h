#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::provider {

// A contiguous view of scattered shared memory, built from second mappings of the same pages.
// It may be destroyed as soon as the view is registered: the card holds the pages.
// Threads: one call at a time.
class ComposedView {
 public:
  ComposedView() = default;
  ComposedView(ComposedView&& other) noexcept;
  ComposedView& operator=(ComposedView&& other) noexcept;
  ~ComposedView();

  // The runs, end to end.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend absl::StatusOr<ComposedView> Compose(std::span<const std::span<std::byte>> runs);
  void Unmap();

  // The mapped view, in whole pages.
  std::span<std::byte> pages_;
  std::span<std::byte> bytes_;
};

// Joins runs that are adjacent in memory; contiguous memory becomes one run.
std::vector<std::span<std::byte>> JoinRuns(std::span<const std::span<std::byte>> runs);

// Precondition: every seam between runs is a page boundary; the memory is shared (MAP_SHARED) and has 4 KiB pages.
// Errors: DEVICE_NOT_CAPABLE where the kernel cannot map the pages a second time (huge pages);
//         DEVICE_OUT_OF_RESOURCES when the process has too many mappings (vm.max_map_count).
// Source: mremap(2), "old_size is zero".
absl::StatusOr<ComposedView> Compose(std::span<const std::span<std::byte>> runs);

}  // namespace rnicd::provider
