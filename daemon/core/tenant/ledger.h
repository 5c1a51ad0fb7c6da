#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/error_reason.h"
#include "base/status.h"

namespace rnicd::core {

// Resources that are counted and limited.
enum class Resource : uint8_t {
  kSessions,
  kAdapters,
  kProtectionDomains,
  kMemoryObjects,
  kMemoryBytes,
  kRegions,
  // Bytes of the pages that regions and mappings hold registered, each page counted once for an owner; see
  // pinned_pages.h.
  kPinnedBytes,
  kPendingRequests,
  kLogicalMappings,
  // Pages of 4 KiB that fast-register regions were initialized for.
  kFastRegisterPages,
  kCompletionQueues,
  kCqEntries,
  kQueuePairs,
  // Entries of both queues of every queue pair.
  kQueueEntries,
  kWindows,
  // Pieces of memory named by posted requests and live fast registrations: the cost of their page lists.
  kPostedPages,
  // Bytes as in kPinnedBytes, but each page counted as often as it is registered.
  kRegisteredBytes,
  // Pages of 4 KiB that logical mappings list, until neither the mapping nor a request uses the list.
  kLogicalPages,
  // Bytes of the daemon's own memory that it keeps for the owner: an estimate; see heap_cost.h.
  kHeapBytes,
  kRings,
  kListeners,
  // Connectors and shared endpoints.
  kConnectors,
  // Bytes of released memory that some process still has; a part of kMemoryBytes, or, of a ring or mapped completion
  // queue, of kHeapBytes; without a limit of its own.
  kLingeringBytes,
};
inline constexpr size_t kResourceCount = 23;
// Those that can have a limit: all before kLingeringBytes.
inline constexpr size_t kLimitedResourceCount = 22;

// "pinned_bytes": for the wire, metrics and messages.
std::string_view ResourceName(Resource resource);

// A limit for each resource; 0 means none.
class Limits {
 public:
  uint64_t& operator[](Resource resource) { return values_[static_cast<size_t>(resource)]; }
  uint64_t operator[](Resource resource) const { return values_[static_cast<size_t>(resource)]; }

 private:
  std::array<uint64_t, kResourceCount> values_{};
};

// An amount of one resource.
struct Amount {
  Resource resource = Resource::kSessions;
  uint64_t amount = 0;
};

// Counts what one owner holds, never above its limits, and passes every count on to its parent: a session's ledger to
// its tenant's, and that to the node's. Charge before allocating, refund after releasing. A charge of any resource also
// charges the kHeapBytes of heap_cost.h, in the same owners, so that no caller can forget them.
// Threads: safe, without locks.
class Ledger {
 public:
  // `parent` may be null; the ledger keeps it alive.
  Ledger(const Limits& limits, std::shared_ptr<Ledger> parent);
  ~Ledger();

  // Charges `amount` and its heap bytes here and in every ancestor, or nowhere. Errors: the resource's QUOTA_ reason
  // with its figures; QUOTA_HEAP_BYTES.
  absl::Status Take(Resource resource, uint64_t amount);
  // The same for all that one call needs. The heap bytes are one sum, so that the figures of a refusal are those of the
  // call, and `used` is without it.
  absl::Status Take(std::span<const Amount> amounts);
  void Give(Resource resource, uint64_t amount);

  // Charges `amount` and no heap bytes to this owner only; its parent's holdings are counted by other rules.
  absl::Status TakeAlone(Resource resource, uint64_t amount);
  void GiveAlone(Resource resource, uint64_t amount) { own_[static_cast<size_t>(resource)].fetch_sub(amount); }

  // What is held here and in other generations of the daemon.
  uint64_t used(Resource resource) const;
  uint64_t limit(Resource resource) const { return limits_[static_cast<size_t>(resource)].load(); }
  bool empty() const;
  // Holdings above a lowered limit stay; nothing is added until they are below it again.
  void SetLimits(const Limits& limits);

  // --- For an owner whom several generations of the daemon serve (daemon/core/generation). This owner only: its parent
  // is shared by figures of its own. ---

  static constexpr uint64_t kNoCap = UINT64_MAX;
  // What is held here.
  uint64_t own(Resource resource) const { return own_[static_cast<size_t>(resource)].load(); }
  // Caps what may be held here, besides the limit; kNoCap for no cap. Returns the cap in force, which covers what is
  // held: a take that is not covered has failed, or will. One thread at a time.
  uint64_t SetCap(Resource resource, uint64_t most);
  uint64_t cap(Resource resource) const;
  // The highest cap with which a take would have passed that only the cap has refused since the last call, or 0.
  uint64_t TakeRefused(Resource resource);
  // Counts what another generation holds, be it above the limit. Returns what it counted: less where it would wrap.
  uint64_t AddForeign(Resource resource, uint64_t amount);
  // The same, within the limit: counts as much as fits.
  uint64_t TakeForeign(Resource resource, uint64_t amount);
  void GiveForeign(Resource resource, uint64_t amount);

 private:
  struct Shared;

  // Made when it is first needed: sessions have none.
  Shared& MakeShared();
  // Whether the owner may hold `amount` more when it holds `before` here.
  bool Fits(Resource resource, uint64_t before, uint64_t amount) const;
  absl::Status Refusal(Resource resource, uint64_t before, uint64_t amount);

  std::array<std::atomic<uint64_t>, kResourceCount> limits_{};
  const std::shared_ptr<Ledger> parent_;
  std::array<std::atomic<uint64_t>, kResourceCount> own_{};
  // Owned; never changes once it is set.
  std::atomic<Shared*> shared_{nullptr};
};

// An amount charged to a ledger, refunded when this is destroyed. Empty when default made or moved from.
class Charge {
 public:
  static absl::StatusOr<Charge> Take(std::shared_ptr<Ledger> ledger, Resource resource, uint64_t amount);
  // A charge for each of the amounts, taken together.
  template <size_t kCount>
  static absl::StatusOr<std::array<Charge, kCount>> TakeAll(const std::shared_ptr<Ledger>& ledger,
                                                            const Amount (&amounts)[kCount]) {
    RNICD_RETURN_IF_ERROR(ledger->Take(amounts));
    std::array<Charge, kCount> charges;
    for (size_t index = 0; index < kCount; ++index) {
      charges[index] = Charge(ledger, amounts[index].resource, amounts[index].amount);
    }
    return charges;
  }

  Charge() = default;
  Charge(Charge&& other) noexcept
      : ledger_(std::move(other.ledger_)), resource_(other.resource_), amount_(std::exchange(other.amount_, 0)) {}
  Charge& operator=(Charge&& other) noexcept;
  ~Charge() { Refund(); }

  void Refund();
  // Charges or refunds the difference to the new amount. An empty charge stays empty. Errors: as Take, with nothing
  // changed.
  absl::Status Adjust(uint64_t amount);
  // The same amount of a resource that has no limit.
  Charge AlsoAs(Resource resource) const;
  uint64_t amount() const { return amount_; }

 private:
  Charge(std::shared_ptr<Ledger> ledger, Resource resource, uint64_t amount)
      : ledger_(std::move(ledger)), resource_(resource), amount_(amount) {}

  std::shared_ptr<Ledger> ledger_;
  Resource resource_ = Resource::kSessions;
  uint64_t amount_ = 0;
};

}  // namespace rnicd::core
