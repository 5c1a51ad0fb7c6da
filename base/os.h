#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rnicd {

// What the kernel says about a descriptor that claims to be memory.
struct MemoryFileFacts {
  // A regular file of tmpfs or hugetlbfs that answers F_GET_SEALS.
  bool is_memory_file = false;
  // Open for reading and writing.
  bool is_read_write = false;
  // Bytes.
  uint64_t size = 0;
  // Bytes of one page behind the file.
  uint64_t page_bytes = 0;
  // F_SEAL_ bits.
  int seals = 0;
  // The two name the file among all open ones.
  uint64_t device = 0;
  uint64_t inode = 0;
};

// The few system calls on memory, so that each can be made to fail in a test.
// Errors:  ErrnoStatus of the call.
// Threads: safe.
// Source:  memfd_create(2), fcntl(2) section "File Sealing", mmap(2), mbind(2), madvise(2).
class Os {
 public:
  virtual ~Os() = default;

  // A sealable memfd of `size` bytes in pages of `page_bytes`; nothing is populated yet.
  virtual absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) = 0;
  // Never fails for an open descriptor: what is not a memory file says so in the facts.
  virtual absl::StatusOr<MemoryFileFacts> Inspect(int fd) = 0;
  virtual absl::Status AddSeals(int fd, int seals) = 0;

  // Maps the first `size` bytes shared, for reading and writing.
  virtual absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) = 0;
  virtual absl::Status Unmap(std::span<std::byte> mapping) = 0;
  // Fails with NUMA_NODE_UNKNOWN where the node has none of that number.
  virtual absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) = 0;
  // Faults every page in, writable. Fails, instead of raising a signal, where pages run out.
  virtual absl::Status Populate(std::span<std::byte> mapping) = 0;
};

// The running kernel. One per process, without state.
Os& LinuxOs();

}  // namespace rnicd
