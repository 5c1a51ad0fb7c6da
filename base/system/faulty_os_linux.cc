#include <sys/mman.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/system/faulty_os.h"

namespace rnicd {

// Into a reservation that has room for it at such an address.
absl::StatusOr<std::span<std::byte>> FaultyOs::PlaceAtPage(std::span<std::byte> mapping) const {
  if (RequirePage(mapping, "").ok()) {
    return mapping;
  }
  const uint64_t room_bytes = OccupiedBytes(*this, mapping.size()) + page_bytes();
  void* const room = mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return ErrnoStatus("mmap", errno);
  }
  auto* const begin = static_cast<std::byte*>(room);
  std::byte* const target = begin + (page_bytes() - reinterpret_cast<uintptr_t>(room) % page_bytes()) % page_bytes();
  void* const moved = mremap(mapping.data(), mapping.size(), mapping.size(), MREMAP_MAYMOVE | MREMAP_FIXED, target);
  const int error = errno;
  if (target != begin) {
    munmap(begin, static_cast<size_t>(target - begin));
  }
  std::byte* const end = target + OccupiedBytes(real_, mapping.size());
  munmap(end, static_cast<size_t>(begin + room_bytes - end));
  return moved == MAP_FAILED ? absl::StatusOr<std::span<std::byte>>(ErrnoStatus("mremap", error))
                             : std::span(target, mapping.size());
}

}  // namespace rnicd
