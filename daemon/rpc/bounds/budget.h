#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace rnicd::rpc {

class Budget;

// Bytes taken from a budget and from every budget above it; returned by the destructor.
class BudgetCharge {
 public:
  BudgetCharge() = default;
  BudgetCharge(BudgetCharge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetCharge& operator=(BudgetCharge&& other) noexcept;
  ~BudgetCharge() { Return(); }

  uint64_t bytes() const { return bytes_; }
  // Takes more bytes from the same budget. False when it has less left, and for an empty charge.
  bool Grow(uint64_t bytes);
  void Return();

 private:
  friend class Budget;
  BudgetCharge(std::shared_ptr<Budget> budget, uint64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}

  std::shared_ptr<Budget> budget_;
  uint64_t bytes_ = 0;
};

// A limited number of bytes: of a connection, of its owner, of the daemon. Each is a part of the one above it.
// Lifetime: shared; a charge keeps its budget.
// Threads:  safe.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  // `parent` is null for the top one.
  Budget(uint64_t limit, std::shared_ptr<Budget> parent) : limit_(limit), parent_(std::move(parent)) {}

  // Empty when this budget, or one above it, has less left.
  std::optional<BudgetCharge> Take(uint64_t bytes);
  // Takes what is already there and cannot be refused, such as a response; may pass the limit.
  BudgetCharge TakeAnyway(uint64_t bytes);
  uint64_t used() const { return used_.load(); }
  // The most that was ever taken at a time.
  uint64_t peak() const { return peak_.load(); }

 private:
  friend class BudgetCharge;
  bool TryAdd(uint64_t bytes);
  void Add(uint64_t bytes);
  void RaisePeak(uint64_t used);
  void Subtract(uint64_t bytes);

  const uint64_t limit_;
  const std::shared_ptr<Budget> parent_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace rnicd::rpc
