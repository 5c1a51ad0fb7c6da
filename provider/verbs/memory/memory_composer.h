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
  friend absl::StatusOr<ComposedView> Compose(std::span<const std::span<std::byte>> runs, uint64_t page_bytes,
                                              const std::byte* at);
  void Unmap();

  // The mapped view, in whole pages.
  std::span<std::byte> pages_;
  std::span<std::byte> bytes_;
};

// The view begins at `at`, or anywhere where that is null. `page_bytes` are those of the kernel's pages. Precondition:
// every seam between runs is a boundary of such pages; the memory is shared (MAP_SHARED) and has pages of that size.
// Errors: DEVICE_NOT_CAPABLE where the kernel cannot map the pages a second time (huge pages), or not at `at`;
//         DEVICE_OUT_OF_RESOURCES when the process has too many mappings (vm.max_map_count).
// Source: mremap(2), "old_size is zero".
absl::StatusOr<ComposedView> Compose(std::span<const std::span<std::byte>> runs, uint64_t page_bytes,
                                     const std::byte* at = nullptr);

}  // namespace rnicd::provider
