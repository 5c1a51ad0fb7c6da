#pragma once

#include "base/system/os.h"
#include "tests/simulation/world/witness.h"

namespace rnicd::simulation {

// The real kernel, except that adding a seal that a file already has succeeds. Linux refuses every F_ADD_SEALS after
// F_SEAL_SEAL, so that of two memory objects made from one file only one could be registered; here both can, and they
// share their pages.
class SealingOs final : public Os {
 public:
  // Both must outlive this.
  SealingOs(Os& kernel, Witness& witness) : kernel_(kernel), witness_(witness) {}

  uint64_t page_bytes() const override { return kernel_.page_bytes(); }
  absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) override {
    return kernel_.CreateMemoryFile(size, page_bytes);
  }
  absl::StatusOr<MemoryFileFacts> Inspect(int fd) override;
  absl::Status AddSeals(int fd, const Seals& seals) override;
  absl::StatusOr<UniqueFd> Duplicate(int fd) override { return kernel_.Duplicate(fd); }
  absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) override { return kernel_.Map(fd, size); }
  absl::Status Unmap(std::span<std::byte> mapping) override { return kernel_.Unmap(mapping); }
  absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) override {
    return kernel_.BindToNumaNode(mapping, numa_node);
  }
  absl::Status Populate(std::span<std::byte> mapping) override { return kernel_.Populate(mapping); }
  absl::Status Resize(int fd, uint64_t size) override { return kernel_.Resize(fd, size); }
  absl::StatusOr<std::span<std::byte>> Remap(std::span<std::byte> mapping, uint64_t size) override {
    return kernel_.Remap(mapping, size);
  }
  absl::Status Reserve(int fd, uint64_t offset, uint64_t bytes) override { return kernel_.Reserve(fd, offset, bytes); }
  absl::Status MakePages(int fd, uint64_t offset, uint64_t bytes, uint64_t page_bytes) override {
    return kernel_.MakePages(fd, offset, bytes, page_bytes);
  }
  absl::Status MapPages(std::span<std::byte> mapping) override { return kernel_.MapPages(mapping); }
  bool AdviseHugePages(std::span<std::byte> mapping) override { return kernel_.AdviseHugePages(mapping); }

 private:
  Os& kernel_;
  Witness& witness_;
  // Canary only: makes every file look like a new one.
  uint64_t strangers_ = 0;
};

}  // namespace rnicd::simulation
