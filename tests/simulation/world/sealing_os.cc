#include "tests/simulation/world/sealing_os.h"

#include "base/status.h"

namespace rnicd::simulation {
namespace {

bool HasAll(const Seals& seals, const Seals& wanted) {
  return (seals.shrink || !wanted.shrink) && (seals.grow || !wanted.grow) && (seals.write || !wanted.write) &&
         (seals.future_write || !wanted.future_write) && (seals.seal || !wanted.seal);
}

}  // namespace

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

absl::Status SealingOs::AddSeals(int fd, const Seals& seals) {
  const absl::StatusOr<MemoryFileFacts> facts = kernel_.Inspect(fd);
  const bool has_them = facts.ok() && facts->is_memory_file && HasAll(facts->seals, seals);
  return has_them ? absl::OkStatus() : kernel_.AddSeals(fd, seals);
}

}  // namespace rnicd::simulation
