#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/error_reason.h"
#include "base/mutex.h"

namespace rnicd::core {

// The name that all tenants without a name of their own share; no tenant may have it.
inline constexpr char kOtherTenants[] = "other";

// Counters of a tenant since the start; they only grow.
// Threads: safe, without locks; counting is one addition.
class TenantTally {
 public:
  // `label`: name of the tenant where the number of names is bounded.
  explicit TenantTally(std::string label);

  const std::string& label() const { return label_; }

  void CountRegistration(bool ok) { Add(registrations_[ok ? 1 : 0]); }
  void CountDeregistration(bool ok) { Add(deregistrations_[ok ? 1 : 0]); }
  // Counts a call that was refused or failed, under the reason of its status.
  void CountRefusal(const absl::Status& status);
  // Its grant has a door; there a connection was refused; and all were left waiting for a moment.
  void CountDoor() { Add(doors_); }
  void CountDoorRefusal() { Add(door_refusals_); }
  void CountDoorStorm() { Add(door_storms_); }
  // Adds all counts of `other`.
  void Take(const TenantTally& other);

  uint64_t registrations(bool ok) const { return registrations_[ok ? 1 : 0].load(std::memory_order_relaxed); }
  uint64_t deregistrations(bool ok) const { return deregistrations_[ok ? 1 : 0].load(std::memory_order_relaxed); }
  uint64_t doors() const { return doors_.load(std::memory_order_relaxed); }
  uint64_t door_refusals() const { return door_refusals_.load(std::memory_order_relaxed); }
  uint64_t door_storms() const { return door_storms_.load(std::memory_order_relaxed); }
  // Reasons with a count that is not zero.
  std::vector<std::pair<ErrorReason, uint64_t>> refusals() const;

 private:
  using Count = std::atomic<uint64_t>;
  static void Add(Count& count, uint64_t amount = 1) { count.fetch_add(amount, std::memory_order_relaxed); }

  const std::string label_;
  std::array<Count, 2> registrations_{};
  std::array<Count, 2> deregistrations_{};
  Count doors_{0};
  Count door_refusals_{0};
  Count door_storms_{0};
  // Counts in the order of AllErrorReasons.
  std::vector<Count> refusals_;
};

// The tallies of all tenants. At most `most_named` have one each; all others share one that is called "other". A tenant
// that no longer exists keeps its tally until the place is needed; "other" takes over the counts, so that sums only
// grow.
// Threads: safe. Its lock is taken when a tenant is created, and by a scrape.
class TallyBook {
 public:
  explicit TallyBook(size_t most_named);

  // The tally of the tenant with that name, created if necessary.
  std::shared_ptr<TenantTally> Open(const std::string& name);
  // All tallies, including "other".
  std::vector<std::shared_ptr<const TenantTally>> All() const;

 private:
  // Frees one place; false when every named tenant is still alive.
  bool ForgetOldest() RNICD_REQUIRES(mutex_);

  struct Entry {
    std::shared_ptr<TenantTally> tally;
    uint64_t opened = 0;
  };

  const size_t most_named_;
  const std::shared_ptr<TenantTally> other_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> named_ RNICD_GUARDED_BY(mutex_);
  uint64_t opened_ RNICD_GUARDED_BY(mutex_) = 0;
};

}  // namespace rnicd::core
