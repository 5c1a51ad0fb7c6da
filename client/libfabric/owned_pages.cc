#include "client/libfabric/owned_pages.h"

#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

namespace rnicd::fi {
namespace {

constexpr uintptr_t kPageBytes = 4096;
// How the GNU C library begins a block: the length of the block before it, then its own with three flags.
// Pages in front of a buffer in which its block is looked for.
constexpr uintptr_t kPagesInFront = 32;
constexpr size_t kBlockFlags = 7;
constexpr size_t kBlockIsMapping = 2;

struct BlockHeader {
  size_t before;
  size_t length_and_flags;
};

// Reads this process's memory without the risk of a fault. An empty result where nothing is mapped.
std::optional<BlockHeader> ReadHeader(uintptr_t address) {
  BlockHeader header;
  const iovec own = {&header, sizeof(header)};
  const iovec there = {reinterpret_cast<void*>(address), sizeof(header)};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t read = process_vm_readv(getpid(), &own, 1, &there, 1, 0);
  return read == sizeof(header) ? std::optional(header) : std::nullopt;
}

// Whether a block that begins there is a mapping of its own, and reaches at least to `end`. For aligned blocks `before`
// is the distance to the mapping's start.
bool IsMappingUpTo(uintptr_t block, uintptr_t end) {
  const std::optional<BlockHeader> header = ReadHeader(block);
  if (!header || (header->length_and_flags & kBlockFlags) != kBlockIsMapping) {
    return false;
  }
  const size_t length = header->length_and_flags & ~kBlockFlags;
  const uintptr_t block_end = block + length;
  return length >= kMappedBlockMin && block_end >= end && block_end % kPageBytes == 0 &&
         (block - header->before) % kPageBytes == 0;
}

// A block's contents begin 16 bytes behind its header: in the first page of the mapping, or at the start of a page.
bool LiesInAMappedBlock(const PageRange& pages) {
  for (uintptr_t in_front = 0; in_front <= kPagesInFront; ++in_front) {
    const uintptr_t page = pages.begin - in_front * kPageBytes;
    if (IsMappingUpTo(page, pages.end) || IsMappingUpTo(page - sizeof(BlockHeader), pages.end)) {
      return true;
    }
  }
  return false;
}

// Whether malloc has just taken it from a heap.
bool IsOfAHeap(const void* block) {
  const std::optional<BlockHeader> header = ReadHeader(reinterpret_cast<uintptr_t>(block) - sizeof(BlockHeader));
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

}  // namespace

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
  const bool whole = pages.begin == first && pages.end == first + bytes;
  return whole || LiesInAMappedBlock(pages) ? pages : PageRange();
}

}  // namespace rnicd::fi
