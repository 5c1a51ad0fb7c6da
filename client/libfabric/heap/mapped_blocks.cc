// librnicd-heap.so, which programs preload: each block of malloc from 512 bytes on is a mapping of its own, so that the
// provider can replace its pages (owned_pages.h). glibc itself makes such blocks only when its heap has no room for
// them. These are made as glibc makes its own (sysmalloc_mmap of its malloc.c, 2.36 to 2.41), and it frees and
// stretches them. What mallinfo says of mappings is wrong then.

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define RNICD_EXPORT extern "C" __attribute__((visibility("default")))

// What glibc has behind the names that are replaced here.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* __libc_calloc(size_t count, size_t bytes);
extern "C" void* __libc_realloc(void* block, size_t bytes);
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);
// NOLINTEND(bugprone-reserved-identifier)

namespace {

constexpr size_t kMappedMin = 512;
constexpr size_t kMappedMax = SIZE_MAX / 4;
constexpr size_t kPageBytes = 4096;
constexpr size_t kIsMapping = 2;

// In front of a block.
struct Header {
  // From the mapping's start to here.
  size_t before;
  size_t length_and_flags;
};

constexpr uintptr_t RoundUp(uintptr_t number, size_t unit) { return (number + unit - 1) / unit * unit; }

Header& HeaderOf(void* block) { return static_cast<Header*>(block)[-1]; }

// `alignment` is a power of 2 that leaves room for the header. Null when there is no mapping to be had: glibc's heap
// may have room.
void* MapBlock(size_t alignment, size_t bytes) {
  if (alignment > kMappedMax || bytes > kMappedMax) {
    return nullptr;
  }
  const size_t length = RoundUp(alignment + bytes, kPageBytes);
  void* const mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return nullptr;
  }
  const auto first = reinterpret_cast<uintptr_t>(mapping);
  const size_t before = RoundUp(first + sizeof(Header), alignment) - sizeof(Header) - first;
  void* const block = static_cast<std::byte*>(mapping) + before + sizeof(Header);
  HeaderOf(block) = {.before = before, .length_and_flags = (length - before) | kIsMapping};
  return block;
}

bool IsMapped(void* block) { return (HeaderOf(block).length_and_flags & kIsMapping) != 0; }

void* Aligned(size_t alignment, size_t bytes) {
  void* const block = bytes >= kMappedMin && std::has_single_bit(alignment)
                          ? MapBlock(std::max(alignment, sizeof(Header)), bytes)
                          : nullptr;
  return block != nullptr ? block : __libc_memalign(alignment, bytes);
}

}  // namespace

RNICD_EXPORT void* malloc(size_t bytes) noexcept {
  void* const block = bytes >= kMappedMin ? MapBlock(sizeof(Header), bytes) : nullptr;
  return block != nullptr ? block : __libc_malloc(bytes);
}

RNICD_EXPORT void* calloc(size_t count, size_t bytes) noexcept {
  size_t all = 0;
  const bool mapped = !__builtin_mul_overflow(count, bytes, &all) && all >= kMappedMin;
  void* const block = mapped ? MapBlock(sizeof(Header), all) : nullptr;
  return block != nullptr ? block : __libc_calloc(count, bytes);
}

RNICD_EXPORT void* realloc(void* block, size_t bytes) noexcept {
  if (block == nullptr) {
    return malloc(bytes);
  }
  void* const moved = bytes >= kMappedMin && !IsMapped(block) ? MapBlock(sizeof(Header), bytes) : nullptr;
  if (moved == nullptr) {
    return __libc_realloc(block, bytes);
  }
  std::memcpy(moved, block, std::min(bytes, malloc_usable_size(block)));
  free(block);
  return moved;
}

RNICD_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept { return Aligned(alignment, bytes); }
RNICD_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return Aligned(alignment, bytes); }
RNICD_EXPORT void* valloc(size_t bytes) noexcept { return Aligned(kPageBytes, bytes); }
RNICD_EXPORT void* pvalloc(size_t bytes) noexcept { return Aligned(kPageBytes, RoundUp(bytes, kPageBytes)); }

RNICD_EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) {
    return EINVAL;
  }
  void* const made = Aligned(alignment, bytes);
  if (made == nullptr) {
    return ENOMEM;
  }
  *block = made;
  return 0;
}
