#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/files/unique_fd.h"

namespace rnicd::vm_bench {

// A process that registers and deregisters memory of its own whenever it is asked through a socket: what a daemon pays
// at least, because the processor has just changed to another address space.
// Lifetime: made before the program has threads; the destructor ends the process.
class AskedProcess {
 public:
  explicit AskedProcess(uint64_t bytes);
  AskedProcess(const AskedProcess&) = delete;
  AskedProcess& operator=(const AskedProcess&) = delete;
  ~AskedProcess();

  // Returns when it has done so once.
  void RegisterAndDeregister() const;

 private:
  UniqueFd socket_;
  pid_t process_ = -1;
};

}  // namespace rnicd::vm_bench
