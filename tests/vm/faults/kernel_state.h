#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace rnicd::test {

// What the kernel's RDMA stack holds for processes, by kind: "mr", "qp", "cq", "pd". A kind without objects is not
// there.
using KernelObjects = std::map<std::string, uint64_t>;

// On one card, of all processes together; what belongs to the kernel itself is left out. Not by process, because the
// kernel names the thread that made an object, and nobody once that thread has ended. Source: rdma-resource(8).
KernelObjects KernelObjectsOn(const std::string& card);
// On all cards.
KernelObjects AllKernelObjects();
std::string Describe(const KernelObjects& objects);

// KiB that the kernel has pinned for a process on behalf of devices. Source: proc(5), VmPin.
uint64_t PinnedKib(pid_t pid);

// True of a message that tells of a fault in the kernel: a warning with a stack trace, a bug, a task that hangs.
bool IsKernelError(std::string_view message);

// The kernel's messages from its construction on. Source: /dev/kmsg.
class KernelLog {
 public:
  KernelLog();

  // Complaints since the last call.
  std::vector<std::string> NewErrors();

 private:
  UniqueFd file_;
};

}  // namespace rnicd::test
