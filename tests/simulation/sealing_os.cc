#include "tests/simulation/sealing_os.h"

#include "base/status.h"

namespace rnicd::simulation {

absl::StatusOr<MemoryFileFacts> SealingOs::Inspect(int fd) {
  RNICD_ASSIGN_OR_RETURN(MemoryFileFacts facts, kernel_.Inspect(fd));
  // Pages are there when their owner has written to them, which the model does not follow.
  facts.populated_bytes = facts.size;
  if (strangers_ > 0 || witness_.Plants(Canary::kPageChargedTwice)) {
    facts.device = ~facts.device;
    facts.inode = ++strangers_;
  }
  return facts;
}

absl::Status SealingOs::AddSeals(int fd, int seals) {
  const absl::StatusOr<MemoryFileFacts> facts = kernel_.Inspect(fd);
  const bool has_them = facts.ok() && facts->is_memory_file && (facts->seals & seals) == seals;
  return has_them ? absl::OkStatus() : kernel_.AddSeals(fd, seals);
}

}  // namespace rnicd::simulation
