#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd {

// Operations on a memory file that are forbidden, for every process.
// Source: fcntl(2), "File Sealing".
struct Seals {
  // Make it smaller, or larger.
  bool shrink = false;
  bool grow = false;
  // Write to it; with `future_write` through descriptors and mappings that are made later.
  bool write = false;
  bool future_write = false;
  // Add a seal.
  bool seal = false;
  friend bool operator==(const Seals&, const Seals&) = default;
};

// Properties that the kernel reports for a descriptor presented as a memory file.
struct MemoryFileFacts {
  // True for a regular file of tmpfs or hugetlbfs that supports F_GET_SEALS.
  bool is_memory_file = false;
  // True for a dma-buf: a buffer of a device driver, its exporter. It has no seals; its size is fixed by the exporter.
  // Nothing here maps one: an exporter may refuse that, and decides what an access does.
  bool is_dmabuf = false;
  // True if the descriptor is open for reading and writing.
  bool is_read_write = false;
  // Bytes.
  uint64_t size = 0;
  // Bytes of the pages that exist.
  uint64_t populated_bytes = 0;
  // Bytes of one page behind the file; kNdkPageBytes for the kernel's smallest pages, whatever their size, and for a
  // dma-buf, whose pages only its exporter knows.
  uint64_t page_bytes = 0;
  // Empty for anything but a memory file.
  Seals seals;
  // Device and inode together identify the file among all open files.
  uint64_t device = 0;
  uint64_t inode = 0;
};

// The system calls on memory, as an interface so that tests can make each of them fail.
//
// On Windows a memory file is a section of committed pages, backed by the paging file, and a descriptor is its handle.
// A section has its size and its pages from the start: it can neither shrink nor grow, and no call takes pages away
// while they are mapped. So the seals of size always hold, `seal` and `future_write` are granted without an effect, and
// `write` is refused: other processes get handles with fewer rights instead. Resize and Remap fail with
// MEMORY_PAGES_UNAVAILABLE, pages are of 4 KiB, and inode is another number each time: a section that was imported
// twice is charged twice.
//
// Errors:  ErrnoStatus of the call; on Windows WindowsStatus.
// Threads: safe.
// Source:  memfd_create(2), fcntl(2) section "File Sealing", mmap(2), mremap(2), mbind(2), madvise(2), fallocate(2);
//          the kernel's driver-api/dma-buf, "Userspace Interface Notes".
class Os {
 public:
  virtual ~Os() = default;

  // Bytes of the kernel's smallest pages: 4096, and on some kernels for arm64 16384 or 65536. Mappings begin at such
  // pages, and memory of any size occupies whole ones.
  virtual uint64_t page_bytes() const = 0;

  // Creates a sealable memfd of `size` bytes in pages of `page_bytes`, or in the kernel's smallest for kNdkPageBytes;
  // no page is populated yet.
  virtual absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) = 0;
  // Never fails for an open descriptor: for any other kind of file is_memory_file and is_dmabuf are false. The server
  // of a FUSE file can block it.
  virtual absl::StatusOr<MemoryFileFacts> Inspect(int fd) = 0;
  // Errors: MEMORY_SEAL_REFUSED where the file takes no more seals, or cannot take this one.
  virtual absl::Status AddSeals(int fd, const Seals& seals) = 0;
  // Another descriptor of the same open file, which no child inherits.
  virtual absl::StatusOr<UniqueFd> Duplicate(int fd) = 0;

  // Maps the first `size` bytes shared, for reading and writing.
  virtual absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) = 0;
  virtual absl::Status Unmap(std::span<std::byte> mapping) = 0;
  // Fails with NUMA_NODE_UNKNOWN when the host has no NUMA node with that number.
  virtual absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) = 0;
  // Faults every page in, writable; begins at a page. Fails, instead of raising a signal, when pages run out.
  virtual absl::Status Populate(std::span<std::byte> mapping) = 0;

  // The calls below take the lock of the file. A client that has the file can hold this lock, and so block them.

  // Changes the size of a file that is not sealed. Pages beyond the new size are freed.
  virtual absl::Status Resize(int fd, uint64_t size) = 0;
  // Changes the size of a mapping of a whole file, which may move. What was populated stays so.
  virtual absl::StatusOr<std::span<std::byte>> Remap(std::span<std::byte> mapping, uint64_t size) = 0;
  // Reserves pages for this part of the file, so that Populate is faster: Populate then only fills the page tables and
  // zeroes the pages, and does not wait for other threads that populate the same file.
  virtual absl::Status Reserve(int fd, uint64_t offset, uint64_t bytes) = 0;
  // Makes the pages of this part of a file that has none there, as zeros. Takes no lock of the address space, so it
  // delays no other thread of the process.
  virtual absl::Status MakePages(int fd, uint64_t offset, uint64_t bytes, uint64_t page_bytes) = 0;
  // Fills the page tables for pages that the file has; several times as fast as Populate.
  virtual absl::Status MapPages(std::span<std::byte> mapping) = 0;
  // Requests transparent huge pages in the mapping. False where the kernel does not give them to shared memory on
  // request.
  virtual bool AdviseHugePages(std::span<std::byte> mapping) = 0;
};

// Bytes that memory of this size occupies: whole pages of the kernel.
inline uint64_t OccupiedBytes(const Os& os, uint64_t bytes) {
  return (bytes + os.page_bytes() - 1) / os.page_bytes() * os.page_bytes();
}

// The implementation for the running system. One per process, stateless.
Os& SystemOs();

}  // namespace rnicd
