#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::provider {

// A contiguous view of scattered shared memory, made of second mappings of the same pages.
// It may go as soon as what it was made for is registered: the card holds the pages.
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

  // Whole pages.
  std::span<std::byte> pages_;
  std::span<std::byte> bytes_;
};

// Runs that follow one another in memory are joined: what remains is one run when the memory is contiguous.
std::vector<std::span<std::byte>> JoinRuns(std::span<const std::span<std::byte>> runs);

// Every seam between runs is a page boundary; the memory is shared (MAP_SHARED) and of 4 KiB pages.
// Errors: DEVICE_NOT_CAPABLE where the kernel cannot map the pages a second time (huge pages);
//         DEVICE_OUT_OF_RESOURCES when the process has too many mappings (vm.max_map_count).
// Source: mremap(2), "old_size is zero".
absl::StatusOr<ComposedView> Compose(std::span<const std::span<std::byte>> runs);

}  // namespace rnicd::provider
