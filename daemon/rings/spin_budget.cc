#include "daemon/rings/spin_budget.h"

namespace rnicd::rings {
namespace {

constexpr std::chrono::milliseconds kWindow{100};

}  // namespace

void SpinBudget::AddRing(uint64_t tenant) {
  MutexLock lock(mutex_);
  ++tenants_[tenant].rings;
}

void SpinBudget::RemoveRing(uint64_t tenant) {
  MutexLock lock(mutex_);
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end() && --found->second.rings == 0) {
    tenants_.erase(found);
  }
}

// A client that runs on this thread's processor can only submit while this thread sleeps.
bool SpinBudget::Allows(uint64_t tenant, uint32_t client_cpu, Instant last_entry, Instant now) {
  const bool runs_elsewhere = client_cpu != 0 ? client_cpu != ring::CurrentCpu() : several_processors_;
  if (!runs_elsewhere || now - last_entry >= options_.longest) {
    return false;
  }
  MutexLock lock(mutex_);
  return HasTime(tenant, now);
}

void SpinBudget::Spend(uint64_t tenant, std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) {
    found->second.spent += time;
  }
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
