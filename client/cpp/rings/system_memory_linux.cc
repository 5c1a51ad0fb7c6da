#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cpp/rings/system_memory.h"

namespace rnicd::inline client {
std::optional<uint64_t> FileBytes(int file) {
  struct stat facts = {};
  return fstat(file, &facts) == 0 ? std::optional(static_cast<uint64_t>(facts.st_size)) : std::nullopt;
}

// A read maps many neighbouring pages of the file at once, and maps them writable, since the kernel does not track the
// first write to memory files. Failures are ignored: the mapping works without it, and kernels before 5.14 do not
// support this advice.
void FillPageTable(std::span<std::byte> mapping) { (void)madvise(mapping.data(), mapping.size(), MADV_POPULATE_READ); }

bool KeepFromChildren(std::span<std::byte> mapping) {
  return madvise(mapping.data(), mapping.size(), MADV_DONTFORK) == 0;
}

bool IsWokenThroughMemory() { return true; }

// The write fails only when the counter is full, after 2^64 doorbells that were not read.
void SetDoorbell(int doorbell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(doorbell, &one, sizeof(one));
}

}  // namespace rnicd::inline client
