#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"

namespace rnicd::test {

// Number of objects that the kernel's RDMA stack holds for processes, by kind: "mr", "qp", "cq", "pd". A kind without
// objects has no entry.
using KernelObjects = std::map<std::string, uint64_t>;

// The objects of all processes on one card, without the kernel's own. They are not split by process, because the kernel
// names the thread that made an object, and reports no owner once that thread has ended. Source: rdma-resource(8).
KernelObjects KernelObjectsOn(const std::string& card);
// The objects of all processes on all cards.
KernelObjects AllKernelObjects();
std::string Describe(const KernelObjects& objects);

// KiB that the kernel has pinned for a process on behalf of devices. Source: proc(5), VmPin.
uint64_t PinnedKib(pid_t pid);

// True if a message reports an error in the kernel: a warning with a stack trace, a bug, a hung task.
bool IsKernelError(std::string_view message);

// The kernel's messages since the construction of this object. Source: /dev/kmsg.
class KernelLog {
 public:
  KernelLog();

  // Errors since the last call.
  std::vector<std::string> NewErrors();

 private:
  UniqueFd file_;
};

}  // namespace rnicd::test
