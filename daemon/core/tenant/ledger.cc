#include "daemon/core/tenant/ledger.h"

#include <algorithm>

#include "base/status.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

struct ResourceRow {
  std::string_view name;
  ErrorReason reason;
};

constexpr std::array<ResourceRow, kResourceCount> kRows = {{
    {"sessions", ErrorReason::QUOTA_SESSIONS},
    {"adapters", ErrorReason::QUOTA_ADAPTERS},
    {"protection_domains", ErrorReason::QUOTA_PROTECTION_DOMAINS},
    {"memory_objects", ErrorReason::QUOTA_MEMORY_OBJECTS},
    {"memory_bytes", ErrorReason::QUOTA_MEMORY_BYTES},
    {"regions", ErrorReason::QUOTA_REGIONS},
    {"pinned_bytes", ErrorReason::QUOTA_PINNED_BYTES},
    {"pending_requests", ErrorReason::QUOTA_PENDING_REQUESTS},
    {"logical_mappings", ErrorReason::QUOTA_LOGICAL_MAPPINGS},
    {"fast_register_pages", ErrorReason::QUOTA_FAST_REGISTER_PAGES},
    {"completion_queues", ErrorReason::QUOTA_COMPLETION_QUEUES},
    {"cq_entries", ErrorReason::QUOTA_CQ_ENTRIES},
    {"queue_pairs", ErrorReason::QUOTA_QUEUE_PAIRS},
    {"queue_entries", ErrorReason::QUOTA_QUEUE_ENTRIES},
    {"windows", ErrorReason::QUOTA_WINDOWS},
    {"posted_pages", ErrorReason::QUOTA_POSTED_PAGES},
    {"registered_bytes", ErrorReason::QUOTA_REGISTERED_BYTES},
    {"logical_pages", ErrorReason::QUOTA_LOGICAL_PAGES},
    {"heap_bytes", ErrorReason::QUOTA_HEAP_BYTES},
    {"rings", ErrorReason::QUOTA_RINGS},
    {"listeners", ErrorReason::QUOTA_LISTENERS},
    {"connectors", ErrorReason::QUOTA_CONNECTORS},
    {"lingering_bytes", ErrorReason::QUOTA_MEMORY_BYTES},
}};

}  // namespace

std::string_view ResourceName(Resource resource) { return kRows[static_cast<size_t>(resource)].name; }

Ledger::Ledger(const Limits& limits, std::shared_ptr<Ledger> parent) : parent_(std::move(parent)) { SetLimits(limits); }

void Ledger::SetLimits(const Limits& limits) {
  for (size_t index = 0; index < kResourceCount; ++index) {
    limits_[index].store(limits[static_cast<Resource>(index)]);
  }
}

absl::Status Ledger::Take(Resource resource, uint64_t amount) {
  const Amount one = {resource, amount};
  return Take({&one, 1});
}

absl::Status Ledger::Take(std::span<const Amount> amounts) {
  uint64_t heap = 0;
  std::array<uint64_t, kResourceCount> taken{};
  absl::Status status;
  for (const auto& [resource, amount] : amounts) {
    heap += resource == Resource::kHeapBytes ? amount : HeapCostOf(resource, amount);
    if (resource != Resource::kHeapBytes && status.ok()) {
      status = TakeAlone(resource, amount);
      taken[static_cast<size_t>(resource)] += status.ok() ? amount : 0;
    }
  }
  if (status.ok()) {
    status = TakeAlone(Resource::kHeapBytes, heap);
    taken[static_cast<size_t>(Resource::kHeapBytes)] = status.ok() ? heap : 0;
  }
  if (status.ok() && parent_ != nullptr) {
    status = parent_->Take(amounts);
  }
  for (size_t index = 0; !status.ok() && index < kResourceCount; ++index) {
    GiveAlone(static_cast<Resource>(index), taken[index]);
  }
  return status;
}

absl::Status Ledger::TakeAlone(Resource resource, uint64_t amount) {
  // Zero is always within the limit, even above one that was lowered.
  if (amount == 0) {
    return absl::OkStatus();
  }
  std::atomic<uint64_t>& used = used_[static_cast<size_t>(resource)];
  // Even without a limit the count must not wrap.
  const uint64_t configured = this->limit(resource);
  const uint64_t limit = configured == 0 ? UINT64_MAX : configured;
  uint64_t before = used.load();
  do {
    if (before > limit || amount > limit - before) {
      return MakeError(ErrorInfo{.reason = kRows[static_cast<size_t>(resource)].reason,
                                 .limit = configured,
                                 .used = before,
                                 .requested = amount});
    }
  } while (!used.compare_exchange_weak(before, before + amount));
  return absl::OkStatus();
}

bool Ledger::empty() const {
  return std::all_of(used_.begin(), used_.end(), [](const auto& used) { return used.load() == 0; });
}

void Ledger::Give(Resource resource, uint64_t amount) {
  if (const uint64_t heap = HeapCostOf(resource, amount); heap != 0) {
    GiveAlone(Resource::kHeapBytes, heap);
  }
  GiveAlone(resource, amount);
  if (parent_ != nullptr) {
    parent_->Give(resource, amount);
  }
}

absl::StatusOr<Charge> Charge::Take(std::shared_ptr<Ledger> ledger, Resource resource, uint64_t amount) {
  RNICD_RETURN_IF_ERROR(ledger->Take(resource, amount));
  return Charge(std::move(ledger), resource, amount);
}

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    Refund();
    ledger_ = std::move(other.ledger_);
    resource_ = other.resource_;
    amount_ = std::exchange(other.amount_, 0);
  }
  return *this;
}

Charge Charge::AlsoAs(Resource resource) const {
  // Without a limit there is nothing to be refused.
  return ledger_ == nullptr ? Charge() : Take(ledger_, resource, amount_).value_or(Charge());
}

absl::Status Charge::Adjust(uint64_t amount) {
  if (ledger_ == nullptr) {
    return absl::OkStatus();
  }
  if (amount > amount_) {
    RNICD_RETURN_IF_ERROR(ledger_->Take(resource_, amount - amount_));
  } else {
    ledger_->Give(resource_, amount_ - amount);
  }
  amount_ = amount;
  return absl::OkStatus();
}

void Charge::Refund() {
  if (ledger_ != nullptr) {
    ledger_->Give(resource_, amount_);
    ledger_.reset();
    amount_ = 0;
  }
}

}  // namespace rnicd::core
