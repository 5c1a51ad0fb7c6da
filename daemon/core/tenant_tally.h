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

// What happened to a tenant since the start; counts only grow.
// Threads: safe, without locks; counting is one addition.
class TenantTally {
 public:
  // `label`: what the tenant is called where the number of names is bounded.
  explicit TenantTally(std::string label);

  const std::string& label() const { return label_; }

  void CountRegistration(bool ok) { Add(registrations_[ok ? 1 : 0]); }
  void CountDeregistration(bool ok) { Add(deregistrations_[ok ? 1 : 0]); }
  // A call that was refused or failed, for whatever reason its status has.
  void CountRefusal(const absl::Status& status);
  // Everything of `other` on top of this.
  void Take(const TenantTally& other);

  uint64_t registrations(bool ok) const { return registrations_[ok ? 1 : 0].load(std::memory_order_relaxed); }
  uint64_t deregistrations(bool ok) const { return deregistrations_[ok ? 1 : 0].load(std::memory_order_relaxed); }
  // Those that are not zero.
  std::vector<std::pair<ErrorReason, uint64_t>> refusals() const;

 private:
  using Count = std::atomic<uint64_t>;
  static void Add(Count& count, uint64_t amount = 1) { count.fetch_add(amount, std::memory_order_relaxed); }

  const std::string label_;
  std::array<Count, 2> registrations_{};
  std::array<Count, 2> deregistrations_{};
  // In the order of AllErrorReasons.
  std::vector<Count> refusals_;
};

// The tallies of all tenants. So many have one of their own; all others share one that is called "other". A tenant
// that is gone keeps its tally until its place is wanted; "other" takes the counts over, so that sums only grow.
// Threads: safe. Its lock is taken when a tenant appears, and by a scrape.
class TallyBook {
 public:
  explicit TallyBook(size_t most_named);

  // The tally of the tenant of that name, new or not.
  std::shared_ptr<TenantTally> Open(const std::string& name);
  // "other" is among them.
  std::vector<std::shared_ptr<const TenantTally>> All() const;

 private:
  // Makes room; false when every named tenant is alive.
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
