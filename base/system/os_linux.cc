#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <string_view>

#include "base/errno_status.h"
#include "base/status.h"
#include "base/system/os.h"
#include "base/units.h"

namespace rnicd {
namespace {

constexpr uint64_t kMaxNumaNodes = 1024;
// Unit of st_blocks.
constexpr uint64_t kStatBlockBytes = 512;

unsigned HugePageFlags(uint64_t page_bytes) {
  if (page_bytes == kNdkPageBytes) {
    return 0;
  }
  return MFD_HUGETLB | (static_cast<unsigned>(std::countr_zero(page_bytes)) << MFD_HUGE_SHIFT);
}

// The page size of a memory-backed filesystem, kNdkPageBytes for the kernel's smallest; 0 for any other.
uint64_t MemoryPageBytes(const struct statfs& filesystem) {
  switch (filesystem.f_type) {
    case TMPFS_MAGIC:
      return kNdkPageBytes;
    case HUGETLBFS_MAGIC:
      return static_cast<uint64_t>(filesystem.f_bsize);
    default:
      return 0;
  }
}

// What the kernel does with shared memory; the word in brackets is in force. Read each time: an operator may change it,
// and the advice comes once for each allocation.
bool SharedMemoryHasHugePages() {
  const UniqueFd file(open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t length = file.valid() ? read(file.get(), text.data(), text.size()) : -1;
  if (length <= 0) {
    return false;
  }
  const std::string_view modes(text.data(), static_cast<size_t>(length));
  return modes.find("[advise]") != std::string_view::npos || modes.find("[always]") != std::string_view::npos ||
         modes.find("[within_size]") != std::string_view::npos || modes.find("[force]") != std::string_view::npos;
}

struct SealBit {
  bool Seals::* seal;
  int bit;
};
constexpr std::array<SealBit, 5> kSealBits = {{{&Seals::shrink, F_SEAL_SHRINK},
                                               {&Seals::grow, F_SEAL_GROW},
                                               {&Seals::write, F_SEAL_WRITE},
                                               {&Seals::future_write, F_SEAL_FUTURE_WRITE},
                                               {&Seals::seal, F_SEAL_SEAL}}};

Seals SealsOf(int bits) {
  Seals seals;
  for (const SealBit& known : kSealBits) {
    seals.*known.seal = (bits & known.bit) != 0;
  }
  return seals;
}

int BitsOf(const Seals& seals) {
  int bits = 0;
  for (const SealBit& known : kSealBits) {
    bits |= seals.*known.seal ? known.bit : 0;
  }
  return bits;
}

// The kernel's facts about a file without seals. Only a dma-buf is examined further; its size is what lseek(2) reports.
MemoryFileFacts InspectUnsealable(int fd) {
  MemoryFileFacts facts;
  struct statfs filesystem = {};
  struct stat file = {};
  if (fstatfs(fd, &filesystem) != 0 || filesystem.f_type != DMA_BUF_MAGIC || fstat(fd, &file) != 0) {
    return facts;
  }
  const off_t size = lseek(fd, 0, SEEK_END);
  facts.is_dmabuf = true;
  facts.is_read_write = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
  facts.size = size < 0 ? 0 : static_cast<uint64_t>(size);
  facts.populated_bytes = facts.size;
  facts.page_bytes = kNdkPageBytes;
  facts.device = file.st_dev;
  facts.inode = file.st_ino;
  return facts;
}

class LinuxOsImplementation final : public Os {
 public:
  uint64_t page_bytes() const override {
    static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }

  absl::StatusOr<UniqueFd> CreateMemoryFile(uint64_t size, uint64_t page_bytes) override {
    UniqueFd fd(memfd_create("rnicd-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING | HugePageFlags(page_bytes)));
    if (!fd.valid()) {
      return ErrnoStatus("memfd_create", errno);
    }
    if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
      return ErrnoStatus("ftruncate", errno);
    }
    return fd;
  }

  // Query the seals first: the kernel answers this query itself. A file without seals may belong to a file system with
  // a server (FUSE), which can block the next query.
  absl::StatusOr<MemoryFileFacts> Inspect(int fd) override {
    MemoryFileFacts facts;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
      return fcntl(fd, F_GETFD) < 0 ? absl::StatusOr<MemoryFileFacts>(ErrnoStatus("fcntl", errno))
                                    : InspectUnsealable(fd);
    }
    struct stat file = {};
    struct statfs filesystem = {};
    if (fstat(fd, &file) != 0 || fstatfs(fd, &filesystem) != 0) {
      return ErrnoStatus("fstat, fstatfs", errno);
    }
    facts.seals = SealsOf(seals);
    facts.page_bytes = MemoryPageBytes(filesystem);
    facts.is_memory_file = facts.page_bytes != 0;
    facts.is_read_write = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
    facts.size = static_cast<uint64_t>(file.st_size);
    facts.populated_bytes = static_cast<uint64_t>(file.st_blocks) * kStatBlockBytes;
    facts.device = file.st_dev;
    facts.inode = file.st_ino;
    return facts;
  }

  absl::Status AddSeals(int fd, const Seals& seals) override {
    if (fcntl(fd, F_ADD_SEALS, BitsOf(seals)) != 0) {
      return errno == EPERM || errno == EBUSY || errno == EINVAL ? MakeError(ErrorReason::MEMORY_SEAL_REFUSED)
                                                                 : ErrnoStatus("fcntl(F_ADD_SEALS)", errno);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<UniqueFd> Duplicate(int fd) override {
    UniqueFd duplicate(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!duplicate.valid()) {
      return ErrnoStatus("fcntl(F_DUPFD_CLOEXEC)", errno);
    }
    return duplicate;
  }

  absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t size) override {
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      return ErrnoStatus("mmap", errno);
    }
    // The mapping holds clients' bytes, which must not get into a core dump. Never fails for a mapping of this kind.
    if (madvise(address, size, MADV_DONTDUMP) != 0) {
      const int error = errno;
      munmap(address, size);
      return ErrnoStatus("madvise(MADV_DONTDUMP)", error);
    }
    return std::span(static_cast<std::byte*>(address), size);
  }

  absl::Status Unmap(std::span<std::byte> mapping) override {
    return munmap(mapping.data(), mapping.size()) == 0 ? absl::OkStatus() : ErrnoStatus("munmap", errno);
  }

  absl::Status BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) override {
    if (numa_node >= kMaxNumaNodes) {
      return MakeError(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node");
    }
    unsigned long nodes[kMaxNumaNodes / (8 * sizeof(unsigned long))] = {};
    nodes[numa_node / (8 * sizeof(unsigned long))] = 1UL << (numa_node % (8 * sizeof(unsigned long)));
    // The kernel reads one bit less than maxnode.
    if (syscall(SYS_mbind, mapping.data(), mapping.size(), MPOL_BIND, nodes, kMaxNumaNodes + 1, 0) != 0) {
      return errno == EINVAL ? MakeError(ErrorReason::NUMA_NODE_UNKNOWN, "numa_node") : ErrnoStatus("mbind", errno);
    }
    return absl::OkStatus();
  }

  absl::Status Populate(std::span<std::byte> mapping) override {
    return AdvisePopulate(mapping, MADV_POPULATE_WRITE, "madvise(MADV_POPULATE_WRITE)");
  }

  absl::Status Resize(int fd, uint64_t size) override {
    return ftruncate(fd, static_cast<off_t>(size)) == 0 ? absl::OkStatus() : ErrnoStatus("ftruncate", errno);
  }

  absl::StatusOr<std::span<std::byte>> Remap(std::span<std::byte> mapping, uint64_t size) override {
    void* address = mremap(mapping.data(), mapping.size(), size, MREMAP_MAYMOVE);
    if (address == MAP_FAILED) {
      return ErrnoStatus("mremap", errno);
    }
    return std::span(static_cast<std::byte*>(address), size);
  }

  absl::Status Reserve(int fd, uint64_t offset, uint64_t bytes) override {
    while (fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
      if (errno == ENOSPC || errno == ENOMEM) {
        return MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE);
      }
      if (errno != EINTR) {
        return ErrnoStatus("fallocate", errno);
      }
    }
    return absl::OkStatus();
  }

  // fallocate leaves the zeros of tmpfs's pages to the first fault; hugetlbfs makes them at once, and cannot be
  // written.
  absl::Status MakePages(int fd, uint64_t offset, uint64_t bytes, uint64_t page_bytes) override {
    if (page_bytes != kNdkPageBytes) {
      return Reserve(fd, offset, bytes);
    }
    // Not const: a file of zeros would be part of every program.
    static constinit std::array<std::byte, size_t{64} << 10> zeros{};
    for (uint64_t done = 0; done < bytes;) {
      const size_t piece = std::min<uint64_t>(zeros.size(), bytes - done);
      const ssize_t written = pwrite(fd, zeros.data(), piece, static_cast<off_t>(offset + done));
      if (written > 0) {
        done += static_cast<uint64_t>(written);
      } else if (written == 0 || errno == ENOSPC || errno == ENOMEM) {
        return MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE);
      } else if (errno != EINTR) {
        return ErrnoStatus("pwrite", errno);
      }
    }
    return absl::OkStatus();
  }

  // A read fault also maps neighbouring pages, and maps pages of shared memory writable, because the kernel does not
  // track the first write to them.
  absl::Status MapPages(std::span<std::byte> mapping) override {
    return AdvisePopulate(mapping, MADV_POPULATE_READ, "madvise(MADV_POPULATE_READ)");
  }

  bool AdviseHugePages(std::span<std::byte> mapping) override {
    return SharedMemoryHasHugePages() && madvise(mapping.data(), mapping.size(), MADV_HUGEPAGE) == 0;
  }

 private:
  static absl::Status AdvisePopulate(std::span<std::byte> mapping, int advice, const char* call) {
    while (madvise(mapping.data(), mapping.size(), advice) != 0) {
      if (errno == EFAULT || errno == EHWPOISON) {
        return MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE);
      }
      if (errno != EINTR && errno != EAGAIN) {
        return ErrnoStatus(call, errno);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

Os& SystemOs() {
  static LinuxOsImplementation os;
  return os;
}

}  // namespace rnicd
