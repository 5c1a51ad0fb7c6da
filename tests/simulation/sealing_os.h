#pragma once

#include "base/os.h"
#include "tests/simulation/witness.h"

namespace rnicd::simulation {

// The real kernel, except that a file that has a seal may get it again. Linux seals a file for good with F_SEAL_SEAL,
// whoever asks, so that of two memory objects made of one file only one could ever be registered; here both can, and
// their pages are the same ones.
class SealingOs final : public Os {
 public:
  // All outlive this.
  SealingOs(Os& kernel, Witness& witness) : kernel_(kernel), witness_(witness) {}

  absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) override {
    return kernel_.CreateMemoryFile(size, page_bytes);
  }
  absl::StatusOr<MemoryFileFacts> Inspect(int fd) override;
  absl::Status AddSeals(int fd, int seals) override;
  absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) override { return kernel_.Map(fd, size); }
  absl::Status Unmap(std::span<std::byte> mapping) override { return kernel_.Unmap(mapping); }
  absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) override {
    return kernel_.BindToNumaNode(mapping, numa_node);
  }
  absl::Status Populate(std::span<std::byte> mapping) override { return kernel_.Populate(mapping); }

 private:
  Os& kernel_;
  Witness& witness_;
  // Of the canary: every file passes for one that was never seen.
  uint64_t strangers_ = 0;
};

}  // namespace rnicd::simulation
