#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/registration.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::inline client {

class AttachedMemory;
class Client;
class Connection;

// The size of the pages behind a memory object. The values are bytes.
enum class PageSize : uint64_t {
  // In requests only: the largest pages that the daemon's pool has ready and whose size divides that of the memory;
  // else, and for memory at an address of the caller's, 4 KiB, as transparent huge pages where the node's kernel has
  // them for shared memory.
  kAuto = 0,
  k4KiB = 4096,
  k2MiB = 2u << 20,
  k1GiB = 1u << 30,
};

struct AllocateOptions {
  // Bytes; at least one page and a whole number of pages.
  uint64_t size = 0;
  PageSize page_size = PageSize::kAuto;
  // NUMA node to allocate the pages from; absent means any.
  std::optional<uint32_t> numa_node;
  // Where to map the memory: a multiple of its page size, with nothing mapped in the `size` bytes from there. 0 means
  // anywhere, and is the only value on Windows. Otherwise refused as FIELD_OUT_OF_RANGE of `address`.
  VirtualAddress address;
  // Fills this process's page table too, at 60 ms for a GiB of 4 KiB pages. Without it each first access to a page of
  // the memory costs a page fault, 250 ms for a GiB in all. The pages themselves are there either way.
  bool populate = true;
  // Called while an allocation is made that takes long, with the bytes that are ready and those in all; at most once
  // for each 64th of it. On librnicd's thread, or in Client::Progress, which then another thread must call meanwhile;
  // must be quick and call nothing of the client. Empty: never.
  std::function<void(uint64_t populated_bytes, uint64_t size)> on_progress;
};

// Memory that can be registered: pages charged to this session, mapped into this process.
//
// Lifetime: the pages stay attached while the Memory, or an object made from it, exists; then they are unmapped and
//           released. May outlive the Client. A moved-from Memory has no bytes and may be destroyed or assigned.
// Threads:  const methods are safe from several threads; the bytes are the caller's to synchronise.
// Errors:   the daemon's; transport failures; MEMORY_PAGES_UNAVAILABLE when this process cannot map the memory.
class Memory {
 public:
  // Allocates pages in the daemon; within ClientOptions::call_deadline and a second for each 64 MiB. Errors:
  // FIELD_OUT_OF_RANGE, MEMORY_SIZE_UNALIGNED, MEMORY_PAGES_UNAVAILABLE, NUMA_NODE_UNKNOWN, QUOTA_MEMORY_BYTES,
  // QUOTA_MEMORY_OBJECTS.
  static absl::StatusOr<Memory> Allocate(const Client& client, const AllocateOptions& options);

  // Allocates all of them in two RPCs, whatever their number (at most 16384). Returns one outcome for each, in order; a
  // failure does not stop the others. A status instead of outcomes means that none is allocated. Errors: as Allocate.
  static absl::StatusOr<std::vector<absl::StatusOr<Memory>>> AllocateBatch(const Client& client,
                                                                           std::span<const AllocateOptions> options);

  // Imports the first `size` bytes of the caller's memfd, which must have MFD_ALLOW_SEALING. `fd` is borrowed and stays
  // open. Afterwards the file is sealed: it cannot shrink, and no new writable mapping of it can be created; existing
  // mappings keep working. Errors: as Allocate; MEMORY_NOT_MEMORY, MEMORY_NOT_SEALABLE, MEMORY_WRITE_SEALED,
  // MEMORY_READ_ONLY, MEMORY_TOO_SHORT, MEMORY_SEAL_REFUSED.
  // Imports a dma-buf as well, whole, if its exporter lets it be mapped; it gets no seal. It can be registered as it is
  // on cards and kernels that register dma-bufs (DEVICE_NOT_CAPABLE on others), not by fast registrations.
  static absl::StatusOr<Memory> Import(const Client& client, int fd, uint64_t size);

  // Imports the caller's memfd, as above, without another mapping: bytes() are `mapping`, the caller's own shared and
  // writable mapping of all bytes from the file's start. It must stay where it is while this memory is attached, and
  // stays the caller's afterwards. Errors: as above; FIELD_OUT_OF_RANGE of `mapping` where the kernel has no such
  // mapping, and on Windows.
  static absl::StatusOr<Memory> Import(const Client& client, int fd, std::span<std::byte> mapping);

  // Puts pages that the daemon allocates in the place of the caller's own: whole pages of the kernel, with their
  // address and contents. bytes() are `pages`. The caller gets private pages back, with the contents at that time, when
  // this memory is not attached any more, also after the daemon has died; where the process cannot have them then,
  // those of the daemon stay. Costs a copy each way, and reading /proc/self/smaps: some 15 ms for each GiB and 5 us for
  // each mapping that the process has.
  //
  // Errors: as Allocate; FIELD_OUT_OF_RANGE of `pages`, with the cause in the message, unless they are private
  // anonymous memory with access rw-p, and on Windows. Refused: files, shared memory, the stacks of the first and of
  // the calling thread, the heap of brk, huge pages of hugetlbfs, and whatever VmFlags and ProtectionKey of smaps show
  // but advice on huge pages, so locked pages, userfaultfd, MADV_DONTFORK, MADV_DONTDUMP. After a failure all is as it
  // was.
  //
  // Nothing can check that the pages are the caller's alone. Best map them by mmap: malloc takes blocks of any size
  // from the heap of brk, if it has room there. Pages of a malloc block from elsewhere lie whole inside of it: never
  // round outwards, since the allocator and its other users write to the rest of the first and of the last page.
  //
  // - While Replace runs, and while the last owner of the memory is destroyed, nothing else writes to the pages.
  //   Another thread that does gets a SIGSEGV, and a system call EFAULT: the write would be lost. Stop such threads at
  //   a lock, or replace before they know of the pages. Reading is safe.
  // - The kernel and devices must not have pinned the pages: direct I/O under way, buffers registered with io_uring,
  //   CUDA or another RDMA library. They would keep on using the old ones.
  // - While replaced, the pages are not unmapped, moved, freed or reallocated, and MADV_DONTNEED does not empty them.
  // - A child made by fork shares them with its parent: either sees what the other writes, until the parent gets its
  //   pages back; then the child alone has those of the daemon. Exec is safe. madvise(MADV_DONTFORK) on bytes() keeps
  //   them from children, which then must not use them and never destroy their copy of the Memory.
  // - While replaced, they are not in core dumps and do not count against the process's memory limit; they take its
  //   address space twice. The pages given back do not have the advice of madvise and mbind of before.
  static absl::StatusOr<Memory> Replace(const Client& client, std::span<std::byte> pages);

  Memory(Memory&&) noexcept = default;
  Memory& operator=(Memory&&) noexcept = default;

  // The mapping in this process, readable and writable.
  std::span<std::byte> bytes() const;
  // Bytes.
  uint64_t size() const { return bytes().size(); }
  // Address of the first byte in this process; Register uses it as the region's address.
  VirtualAddress address() const;
  MemoryObjectId id() const;
  // The page size of this memory; never kAuto.
  PageSize page_size() const;
  // Whether its pages were ready in the daemon's pool, and whether the kernel may back them by transparent huge pages.
  bool from_pool() const;
  bool transparent_huge_pages() const;

  // `part`, which must be inside bytes(), as an entry of an MDL chain. Errors: MDL_RANGE_OUTSIDE_MEMORY.
  absl::StatusOr<MdlEntry> Entry(std::span<const std::byte> part) const;

  // Releases the memory now; on success bytes() is empty. Errors: MEMORY_IN_USE while a region uses it.
  absl::Status Release();

  // For MemoryRegion. Null when moved from.
  std::shared_ptr<Connection> connection() const;

 private:
  // Provisions memory that is not sealed yet.
  friend class MemoryRegion;

  static absl::StatusOr<Memory> From(absl::StatusOr<std::shared_ptr<AttachedMemory>> attached);
  explicit Memory(std::shared_ptr<AttachedMemory> attached) : attached_(std::move(attached)) {}

  std::shared_ptr<AttachedMemory> attached_;
};

}  // namespace rnicd::inline client
