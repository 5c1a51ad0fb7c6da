#include <sys/utsname.h>
#include <unistd.h>

#include "base/this_process.h"

namespace rnicd {

int32_t ProcessId() { return getpid(); }

std::string KernelRelease() {
  utsname kernel = {};
  (void)uname(&kernel);
  return kernel.release;
}

}  // namespace rnicd
