#include <sys/utsname.h>
#include <unistd.h>

#include <array>

#include "base/system/this_process.h"

namespace rnicd {

int32_t ProcessId() { return getpid(); }

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
