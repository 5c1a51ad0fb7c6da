#include "daemon/rings/spin_budget.h"

namespace rnicd::rings {
namespace {

constexpr std::chrono::milliseconds kWindow{100};
// How long a client that shares the processor is expected to go on.
constexpr std::chrono::milliseconds kClientStays{1};

}  // namespace

void SpinBudget::RemoveRing(uint64_t tenant) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end() && --found->second.rings == 0) {
    tenants_.erase(found);
  }
}

// A client that runs on this thread's processor can only submit while this thread sleeps.
bool SpinBudget::Allows(uint64_t tenant, uint32_t client_cpu, Instant last_entry, Instant now) {
  if (client_here_.has_value() && now - *client_here_ < kClientStays) {
    return false;
  }
  const bool runs_elsewhere = client_cpu != 0 ? client_cpu != ring::CurrentCpu() : several_processors_;
  return runs_elsewhere && now - last_entry < options_.longest && HasTime(tenant, now);
}

bool SpinBudget::HasTime(uint64_t tenant, Instant now) {
  if (now - window_began_ >= kWindow) {
    window_began_ = now;
    for (auto& [number, each] : tenants_) {
      each.spent = std::chrono::nanoseconds(0);
    }
  }
  const auto found = tenants_.find(tenant);
  return found != tenants_.end() && found->second.spent * (100 * static_cast<int64_t>(tenants_.size())) <
                                        std::chrono::nanoseconds(kWindow) * static_cast<int64_t>(options_.percent);
}

}  // namespace rnicd::rings
