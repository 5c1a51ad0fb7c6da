#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cpp/system_memory.h"

namespace rnicd::inline client {

std::optional<uint64_t> FileBytes(int file) {
  struct stat facts = {};
  return fstat(file, &facts) == 0 ? std::optional(static_cast<uint64_t>(facts.st_size)) : std::nullopt;
}

// A read maps many neighbouring pages of the file at once, and maps them writable, since memory files need no note of
// the first write. Whatever the kernel says, the mapping works without it: before 5.14 it knows no such advice.
void FillPageTable(std::span<std::byte> mapping) { (void)madvise(mapping.data(), mapping.size(), MADV_POPULATE_READ); }

bool KeepFromChildren(std::span<std::byte> mapping) {
  return madvise(mapping.data(), mapping.size(), MADV_DONTFORK) == 0;
}

bool IsWokenThroughMemory() { return true; }

// The write fails only where 2^64 others were not heard.
void SetDoorbell(int doorbell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(doorbell, &one, sizeof(one));
}

}  // namespace rnicd::inline client
