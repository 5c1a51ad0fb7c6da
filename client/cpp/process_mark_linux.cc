#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "client/cpp/process_mark.h"

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
