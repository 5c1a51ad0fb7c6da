#include "daemon/rpc/bounds/budget.h"

namespace rnicd::rpc {

BudgetCharge& BudgetCharge::operator=(BudgetCharge&& other) noexcept {
  if (this != &other) {
    Return();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void BudgetCharge::Return() {
  if (budget_ != nullptr) {
    budget_->Subtract(std::exchange(bytes_, 0));
    budget_ = nullptr;
  }
}

bool BudgetCharge::Grow(uint64_t bytes) {
  if (budget_ == nullptr || (bytes > 0 && !budget_->TryAdd(bytes))) {
    return false;
  }
  bytes_ += bytes;
  return true;
}

std::optional<BudgetCharge> Budget::Take(uint64_t bytes) {
  if (!TryAdd(bytes)) {
    return std::nullopt;
  }
  return BudgetCharge(shared_from_this(), bytes);
}

BudgetCharge Budget::TakeAnyway(uint64_t bytes) {
  Add(bytes);
  return BudgetCharge(shared_from_this(), bytes);
}

bool Budget::TryAdd(uint64_t bytes) {
  uint64_t used = used_.load();
  do {
    if (used > limit_ || bytes > limit_ - used) {
      return false;
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  if (parent_ == nullptr || parent_->TryAdd(bytes)) {
    RaisePeak(used + bytes);
    return true;
  }
  used_.fetch_sub(bytes);
  return false;
}

void Budget::Add(uint64_t bytes) {
  for (Budget* budget = this; budget != nullptr; budget = budget->parent_.get()) {
    budget->RaisePeak(budget->used_.fetch_add(bytes) + bytes);
  }
}

void Budget::RaisePeak(uint64_t used) {
  uint64_t peak = peak_.load();
  while (peak < used && !peak_.compare_exchange_weak(peak, used)) {
  }
}

void Budget::Subtract(uint64_t bytes) {
  for (Budget* budget = this; budget != nullptr; budget = budget->parent_.get()) {
    budget->used_.fetch_sub(bytes);
  }
}

}  // namespace rnicd::rpc
