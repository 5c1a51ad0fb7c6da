#include "client/libfabric/owned_pages.h"

#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace rnicd::fi {
namespace {

constexpr uintptr_t kPageBytes = PageRange::kPageBytes;
// Pages in front of a buffer in which the start of its block is looked for.
constexpr uintptr_t kPagesInFront = 32;
// How the GNU C library begins a block: the length of the block before it, then its own with three flags.
constexpr size_t kBlockFlags = 7;
constexpr size_t kBlockIsMapping = 2;
// Heaps beside that of brk, which threads have, begin at multiples of this, with a pointer to what describes the arena:
// in the first page of this heap, or of another one of that arena.
constexpr uintptr_t kHeapAlignment = uintptr_t{64} << 20;

struct BlockHeader {
  size_t before;
  size_t length_and_flags;
};

// Reads this process's memory without the risk of a fault. An empty result where nothing is mapped.
template <typename Object>
std::optional<Object> ReadAt(uintptr_t address) {
  Object object;
  const iovec own = {&object, sizeof(object)};
  const iovec there = {reinterpret_cast<void*>(address), sizeof(object)};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t read = process_vm_readv(getpid(), &own, 1, &there, 1, 0);
  return read == sizeof(object) ? std::optional(object) : std::nullopt;
}

// Whether a block that begins there is a mapping of its own, which has all of these pages. For aligned blocks `before`
// is the distance to the mapping's start.
bool IsMappingOf(const PageRange& pages, uintptr_t block, size_t length_min) {
  const std::optional<BlockHeader> header = ReadAt<BlockHeader>(block);
  if (!header || (header->length_and_flags & kBlockFlags) != kBlockIsMapping || header->before > block) {
    return false;
  }
  const size_t length = header->length_and_flags & ~kBlockFlags;
  const PageRange mapping = {.begin = block - header->before, .end = block + length};
  return length >= length_min && mapping.begin % kPageBytes == 0 && mapping.end % kPageBytes == 0 &&
         mapping.Contains(pages);
}

// A pool's block begins in the first page of its mapping, or 16 bytes in front of a page.
bool LiesInAPool(const PageRange& pages) {
  for (uintptr_t in_front = 0; in_front <= kPagesInFront; ++in_front) {
    const uintptr_t page = pages.begin - in_front * kPageBytes;
    if (IsMappingOf(pages, page, kMappedBlockMin) || IsMappingOf(pages, page - sizeof(BlockHeader), kMappedBlockMin)) {
      return true;
    }
  }
  return false;
}

// Whether a thread's heap has the page: there is no block with a mapping of its own in it, whatever its bytes look
// like. (That of brk is known to the kernel.)
bool IsOfAThreadsHeap(uintptr_t page) {
  const auto arena = ReadAt<uintptr_t>(page & ~(kHeapAlignment - 1));
  return arena && *arena % kHeapAlignment != 0 && *arena % kHeapAlignment < kPageBytes && ReadAt<char>(*arena);
}

// mallinfo2 knows nothing of another malloc, and says 0.
bool IsMallocOfTheCLibrary() { return mallinfo2().arena != 0; }

// Whether malloc has just taken it from a heap.
bool IsOfAHeap(const void* block) {
  const auto header = ReadAt<BlockHeader>(reinterpret_cast<uintptr_t>(block) - sizeof(BlockHeader));
  return header && (header->length_and_flags & kBlockIsMapping) == 0;
}

// A block of a heap; null where it would be a mapping.
void* TakeFromTheHeap(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr || IsOfAHeap(block)) {
    return block;
  }
  std::free(block);
  return nullptr;
}

// Whether the user has chosen from which size on blocks are mappings. What has more rights than its user ignores it.
bool HasChosenThreshold() {
  const char* const tunables = secure_getenv("GLIBC_TUNABLES");
  return secure_getenv("MALLOC_MMAP_THRESHOLD_") != nullptr ||
         (tunables != nullptr && std::strstr(tunables, "glibc.malloc.mmap_threshold=") != nullptr);
}

}  // namespace

void KeepBlocksMapped() {
  if (!HasChosenThreshold()) {
    mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMappedBlockMin));
  }
}

void FillHolesOfTheHeap() {
  void* const probe = TakeFromTheHeap(kHoleMin);
  std::free(probe);
  if (probe == nullptr) {
    return;
  }
  malloc_trim(0);
  // For the life of the process, since peers decide how often endpoints are made.
  static std::atomic<size_t> budget = kHolesMax;
  // mallinfo2 knows nothing of another malloc, and says 0.
  size_t left = std::min(mallinfo2().fordblks, budget.load());
  for (size_t bytes = kHoleMin << 6; bytes >= kHoleMin; bytes >>= 1) {
    while (left >= bytes && TakeFromTheHeap(bytes) != nullptr) {
      left -= bytes;
      budget -= std::min(bytes, budget.load());
    }
  }
}

PageRange OwnedPages(const void* buffer, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(buffer);
  PageRange pages;
  if (bytes == 0 || __builtin_add_overflow(first, bytes + kPageBytes - 1, &pages.end)) {
    return {};
  }
  pages.begin = first & ~(kPageBytes - 1);
  pages.end &= ~(kPageBytes - 1);
  if (pages.begin == first && pages.end == first + bytes) {
    return pages;
  }
  const bool owned = IsMallocOfTheCLibrary() && !IsOfAThreadsHeap(pages.begin) &&
                     (IsMappingOf(pages, first - sizeof(BlockHeader), 0) || LiesInAPool(pages));
  return owned ? pages : PageRange();
}

uint64_t FileUnder(const PageRange& pages) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  uint64_t file = 0;
  uintptr_t mapped = pages.begin;
  std::array<char, PATH_MAX + 128> line;
  while (mapped < pages.end && maps != nullptr && std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
    PageRange area;
    uint64_t inode = 0;
    if (std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64, &area.begin, &area.end, &inode) !=
            3 ||
        area.end <= mapped) {
      continue;
    }
    if (area.begin > mapped || (file != 0 && inode != file)) {
      return 0;
    }
    file = inode;
    mapped = area.end;
  }
  return mapped < pages.end ? 0 : file;
}

}  // namespace rnicd::fi
