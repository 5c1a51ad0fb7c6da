#include "daemon/core/tenant/tenant_tally.h"

#include <span>

#include "base/status.h"

namespace rnicd::core {
TenantTally::TenantTally(std::string label) : label_(std::move(label)), refusals_(AllErrorReasons().size()) {}

void TenantTally::CountRefusal(const absl::Status& status) {
  const ErrorReasonRow& row = RowOf(ErrorInfoOf(status).reason);
  Add(refusals_[static_cast<size_t>(&row - AllErrorReasons().data())]);
}

void TenantTally::Take(const TenantTally& other) {
  for (const bool ok : {false, true}) {
    Add(registrations_[ok ? 1 : 0], other.registrations(ok));
    Add(deregistrations_[ok ? 1 : 0], other.deregistrations(ok));
  }
  Add(doors_, other.doors());
  Add(door_refusals_, other.door_refusals());
  Add(door_storms_, other.door_storms());
  for (size_t index = 0; index < refusals_.size(); ++index) {
    Add(refusals_[index], other.refusals_[index].load(std::memory_order_relaxed));
  }
}

std::vector<std::pair<ErrorReason, uint64_t>> TenantTally::refusals() const {
  std::vector<std::pair<ErrorReason, uint64_t>> refusals;
  const std::span<const ErrorReasonRow> rows = AllErrorReasons();
  for (size_t index = 0; index < refusals_.size(); ++index) {
    if (const uint64_t count = refusals_[index].load(std::memory_order_relaxed); count > 0) {
      refusals.emplace_back(rows[index].reason, count);
    }
  }
  return refusals;
}

TallyBook::TallyBook(size_t most_named)
    : most_named_(most_named), other_(std::make_shared<TenantTally>(std::string(kOtherTenants))) {}

std::shared_ptr<TenantTally> TallyBook::Open(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = named_.find(name);
  if (found != named_.end()) {
    found->second.opened = ++opened_;
    return found->second.tally;
  }
  // A tenant whose real name is "other" must not have a series of its own beside the shared one.
  if (name == kOtherTenants || (named_.size() >= most_named_ && !ForgetOldest())) {
    return other_;
  }
  auto tally = std::make_shared<TenantTally>(name);
  named_.emplace(name, Entry{.tally = tally, .opened = ++opened_});
  return tally;
}

// Only the book can create another reference to a tally that has no other owner.
bool TallyBook::ForgetOldest() {
  auto oldest = named_.end();
  for (auto entry = named_.begin(); entry != named_.end(); ++entry) {
    const bool gone = entry->second.tally.use_count() == 1;
    if (gone && (oldest == named_.end() || entry->second.opened < oldest->second.opened)) {
      oldest = entry;
    }
  }
  if (oldest == named_.end()) {
    return false;
  }
  other_->Take(*oldest->second.tally);
  named_.erase(oldest);
  return true;
}

std::vector<std::shared_ptr<const TenantTally>> TallyBook::All() const {
  std::vector<std::shared_ptr<const TenantTally>> all;
  MutexLock lock(mutex_);
  all.reserve(named_.size() + 1);
  for (const auto& [name, entry] : named_) {
    all.push_back(entry.tally);
  }
  all.push_back(other_);
  return all;
}

}  // namespace rnicd::core
