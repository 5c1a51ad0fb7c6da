#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "client/cpp/rings/system_memory.h"

namespace rnicd::inline client {
namespace {

// A page that the kernel empties in every child, however that is made. Null where the kernel does not do that.
std::atomic<int32_t>* MakeMark() {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    return nullptr;
  }
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return nullptr;
  }
  return new (page) std::atomic<int32_t>(0);
}

}  // namespace

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

// Threads that come here at once write the same number.
int32_t ThisProcess() {
  static std::atomic<int32_t>* const mark = MakeMark();
  if (mark == nullptr) {
    return getpid();
  }
  int32_t process = mark->load(std::memory_order_relaxed);
  if (process == 0) {
    process = getpid();
    mark->store(process, std::memory_order_relaxed);
  }
  return process;
}

}  // namespace rnicd::inline client
