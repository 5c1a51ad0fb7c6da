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

// Even without a limit a count must not wrap.
uint64_t LimitOr(uint64_t configured) { return configured == 0 ? UINT64_MAX : configured; }

}  // namespace

// What a ledger has besides, once its owner is served by several generations of the daemon.
struct Ledger::Shared {
  struct Row {
    // What other generations hold.
    std::atomic<uint64_t> foreign{0};
    std::atomic<uint64_t> cap{kNoCap};
    // See TakeRefused.
    std::atomic<uint64_t> refused{0};
  };
  Row& operator[](Resource resource) { return rows[static_cast<size_t>(resource)]; }

  std::array<Row, kResourceCount> rows;
};

std::string_view ResourceName(Resource resource) { return kRows[static_cast<size_t>(resource)].name; }

Ledger::Ledger(const Limits& limits, std::shared_ptr<Ledger> parent) : parent_(std::move(parent)) { SetLimits(limits); }

Ledger::~Ledger() { delete shared_.load(); }

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
  std::atomic<uint64_t>& own = own_[static_cast<size_t>(resource)];
  uint64_t before = own.load();
  do {
    if (!Fits(resource, before, amount)) {
      return Refusal(resource, before, amount);
    }
  } while (!own.compare_exchange_weak(before, before + amount));
  // A thread that lowered the cap, or counted what another generation holds, has seen this amount, or is seen here.
  if (shared_.load() != nullptr && !Fits(resource, before, amount)) {
    GiveAlone(resource, amount);
    return Refusal(resource, before, amount);
  }
  return absl::OkStatus();
}

bool Ledger::Fits(Resource resource, uint64_t before, uint64_t amount) const {
  uint64_t most = LimitOr(limit(resource));
  if (Shared* const shared = shared_.load(); shared != nullptr) {
    const Shared::Row& row = (*shared)[resource];
    most = std::min(most - std::min(most, row.foreign.load()), row.cap.load());
  }
  return before <= most && amount <= most - before;
}

absl::Status Ledger::Refusal(Resource resource, uint64_t before, uint64_t amount) {
  ErrorInfo info{.reason = kRows[static_cast<size_t>(resource)].reason,
                 .limit = limit(resource),
                 .used = before,
                 .requested = amount};
  if (Shared* const shared = shared_.load(); shared != nullptr) {
    Shared::Row& row = (*shared)[resource];
    const uint64_t foreign = row.foreign.load();
    const uint64_t most = LimitOr(info.limit) - std::min(LimitOr(info.limit), foreign);
    info.used = before + std::min(foreign, UINT64_MAX - before);
    // Only the cap refuses it: another generation may have room.
    if (before <= most && amount <= most - before) {
      info.limit = foreign + std::min(row.cap.load(), UINT64_MAX - foreign);
      uint64_t refused = row.refused.load();
      while (refused < before + amount && !row.refused.compare_exchange_weak(refused, before + amount)) {
      }
    }
  }
  return MakeError(std::move(info));
}

bool Ledger::empty() const {
  for (size_t index = 0; index < kResourceCount; ++index) {
    if (used(static_cast<Resource>(index)) != 0) {
      return false;
    }
  }
  return true;
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

// --- Several generations ---

Ledger::Shared& Ledger::MakeShared() {
  Shared* shared = shared_.load();
  if (shared == nullptr) {
    auto made = std::make_unique<Shared>();
    if (shared_.compare_exchange_strong(shared, made.get())) {
      shared = made.release();
    }
  }
  return *shared;
}

uint64_t Ledger::used(Resource resource) const {
  Shared* const shared = shared_.load();
  const uint64_t here = own(resource);
  return here + (shared == nullptr ? 0 : std::min((*shared)[resource].foreign.load(), UINT64_MAX - here));
}

// A take counts its amount and then reads the cap, this stores the cap and then reads the count: one of the two sees
// the other. What is above the cap of before belongs to takes that will read a cap below.
uint64_t Ledger::SetCap(Resource resource, uint64_t most) {
  Shared::Row& row = MakeShared()[resource];
  const uint64_t before = row.cap.exchange(most);
  const uint64_t cap = std::max(most, std::min(own(resource), before));
  if (cap != most) {
    row.cap.store(cap);
  }
  return cap;
}

uint64_t Ledger::cap(Resource resource) const {
  Shared* const shared = shared_.load();
  return shared == nullptr ? kNoCap : (*shared)[resource].cap.load();
}

uint64_t Ledger::TakeRefused(Resource resource) {
  Shared* const shared = shared_.load();
  return shared == nullptr ? 0 : (*shared)[resource].refused.exchange(0);
}

uint64_t Ledger::AddForeign(Resource resource, uint64_t amount) {
  std::atomic<uint64_t>& foreign = MakeShared()[resource].foreign;
  uint64_t before = foreign.load();
  uint64_t added = 0;
  do {
    added = std::min(amount, UINT64_MAX - before);
  } while (!foreign.compare_exchange_weak(before, before + added));
  return added;
}

uint64_t Ledger::TakeForeign(Resource resource, uint64_t amount) {
  std::atomic<uint64_t>& foreign = MakeShared()[resource].foreign;
  const uint64_t limit = LimitOr(this->limit(resource));
  uint64_t before = foreign.load();
  uint64_t taken = 0;
  do {
    const uint64_t used = before + std::min(own(resource), UINT64_MAX - before);
    taken = std::min(amount, limit - std::min(limit, used));
  } while (!foreign.compare_exchange_weak(before, before + taken));
  // As in SetCap: a take at this moment sees this amount, or is seen here.
  const uint64_t room = limit - std::min(limit, before + taken);
  const uint64_t here = own(resource);
  const uint64_t above = std::min(taken, here - std::min(here, room));
  foreign.fetch_sub(above);
  return taken - above;
}

void Ledger::GiveForeign(Resource resource, uint64_t amount) { MakeShared()[resource].foreign.fetch_sub(amount); }

// --- Charge ---

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
