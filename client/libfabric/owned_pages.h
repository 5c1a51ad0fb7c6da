#pragma once

#include <cstddef>
#include <cstdint>

namespace rnicd::fi {

// Whole pages: [begin, end).
struct PageRange {
  static constexpr uintptr_t kPageBytes = 4096;

  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool empty() const { return begin == end; }
  size_t bytes() const { return end - begin; }
  bool Contains(const PageRange& other) const { return begin <= other.begin && other.end <= end; }
  bool Overlaps(const PageRange& other) const { return begin < other.end && other.begin < end; }
};

// From this size on malloc makes a mapping of its own for each block, unless one of its heaps has free room for the
// block: such a block shares its first and its last page.
inline constexpr size_t kMappedBlockMin = size_t{128} << 10;
// Sees to that, unless the user has chosen another size: by MALLOC_MMAP_THRESHOLD_, or the tunable of the same meaning.
// Without it the size rises when the first such block is freed.
void KeepBlocksMapped();

// Takes free room from this size on out of the heap of the calling thread, for good, so that malloc makes mappings for
// what does not fit elsewhere: pools of libfabric's are some MiB. Their physical pages go back to the kernel before, so
// this costs addresses only, of which a process loses kHolesMax at most. Does nothing with another malloc.
inline constexpr size_t kHoleMin = size_t{1} << 20;
inline constexpr size_t kHolesMax = size_t{1} << 30;
void FillHolesOfTheHeap();

// The pages of a buffer, if nothing else can lie in them; otherwise empty. They are the buffer's alone when it consists
// of whole pages, or when it lies in a block for which malloc has made a mapping of its own: the rest of such pages is
// the block's own, or malloc's header of it, or unused. The buffer begins where the block does; or, with at least
// kMappedBlockMin bytes, near that: a pool of libfabric's leaves one entry free in front.
PageRange OwnedPages(const void* buffer, size_t bytes);

// The inode of the one file that is mapped in all of these pages; 0, which no file has, if there is none.
uint64_t FileUnder(const PageRange& pages);

}  // namespace rnicd::fi
