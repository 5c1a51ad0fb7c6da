#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

#include "base/system/this_process.h"

namespace rnicd {
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
int32_t ProcessId() {
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

uint64_t MachineMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string KernelRelease() {
  utsname kernel = {};
  (void)uname(&kernel);
  return kernel.release;
}

}  // namespace rnicd
