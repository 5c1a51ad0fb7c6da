#include "daemon/core/memory_pool.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/units.h"

namespace rnicd::core {
namespace {

// Made, or mapped, at once: a fraction of a millisecond.
constexpr uint64_t kMadeAtOnce = uint64_t{1} << 20;
// A file serves what is at least half as large, so that not much is made in vain, and at most twice as large.
constexpr uint64_t kWithinFactor = 2;
constexpr std::chrono::seconds kRetry{1};

bool Serves(const FreshMemory& memory, uint64_t size, const PageChoice& pages) {
  return memory.pages().page_bytes == pages.page_bytes &&
         (!pages.numa_node.has_value() || memory.pages().numa_node == pages.numa_node) &&
         memory.size() / kWithinFactor <= size && size / kWithinFactor <= memory.size();
}

uint64_t Distance(uint64_t one, uint64_t other) { return one < other ? other - one : one - other; }

}  // namespace

MemoryPool::MemoryPool(Os& os, std::shared_ptr<Ledger> node, const std::vector<PoolClass>& classes)
    : os_(os), node_(std::move(node)) {
  MutexLock lock(mutex_);
  ServiceOf(kNdkPageBytes);
  for (const PoolClass& wanted : classes) {
    classes_.push_back({.wanted = wanted});
    ServiceOf(wanted.pages.page_bytes);
  }
  // The largest pages first.
  std::ranges::sort(served_, std::greater(), &Service::page_bytes);
}

MemoryPool::Service& MemoryPool::ServiceOf(uint64_t page_bytes) {
  const auto found = std::ranges::find(served_, page_bytes, &Service::page_bytes);
  return found != served_.end() ? *found : served_.emplace_back(Service{.page_bytes = page_bytes});
}

std::optional<MemoryPool::File> MemoryPool::Take(uint64_t size, std::optional<uint64_t> page_bytes,
                                                 std::optional<uint32_t> numa_node) {
  MutexLock lock(mutex_);
  for (Service& service : served_) {
    if (page_bytes.value_or(service.page_bytes) != service.page_bytes || size % service.page_bytes != 0) {
      continue;
    }
    std::optional<File> file = TakeNearest(size, {.page_bytes = service.page_bytes, .numa_node = numa_node});
    if (file.has_value()) {
      ++service.hits;
      changed_.NotifyAll();
      return file;
    }
    // Without a choice of pages the smallest is what the caller gets.
    if (page_bytes.has_value() || service.page_bytes == kNdkPageBytes) {
      ++service.misses;
    }
  }
  return std::nullopt;
}

std::optional<MemoryPool::File> MemoryPool::TakeNearest(uint64_t size, const PageChoice& pages) {
  Class* best = nullptr;
  for (Class& candidate : classes_) {
    if (!candidate.ready.empty() && Serves(candidate.ready.back().memory, size, pages) &&
        (best == nullptr || Distance(candidate.wanted.file_bytes, size) < Distance(best->wanted.file_bytes, size))) {
      best = &candidate;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  File file = std::move(best->ready.back());
  best->ready.pop_back();
  return file;
}

void MemoryPool::Return(File file) {
  absl::StatusOr<Charge> charge = Charge::Take(node_, Resource::kMemoryBytes, file.memory.size());
  if (!charge.ok()) {
    changed_.NotifyAll();
    return;
  }
  file.charge = *std::move(charge);
  MutexLock lock(mutex_);
  std::vector<File>& ready = classes_[file.index].ready;
  ready.push_back(std::move(file));
}

std::vector<MemoryPool::File> MemoryPool::MakeRoom(uint64_t bytes) {
  std::vector<File> removed;
  MutexLock lock(mutex_);
  const uint64_t limit = node_->limit(Resource::kMemoryBytes);
  const uint64_t used = node_->used(Resource::kMemoryBytes);
  if (limit == 0 || bytes > limit || used <= limit - bytes) {
    return removed;
  }
  const uint64_t wanted = used - (limit - bytes);
  uint64_t held = making_charge_.amount();
  for (const Class& each : classes_) {
    held += each.ready.size() * each.wanted.file_bytes;
  }
  if (held < wanted) {
    return removed;
  }
  uint64_t freed = making_charge_.amount();
  making_charge_.Refund();
  for (Class& each : classes_) {
    for (; freed < wanted && !each.ready.empty(); freed += each.wanted.file_bytes) {
      each.ready.back().charge.Refund();
      removed.push_back(std::move(each.ready.back()));
      each.ready.pop_back();
    }
  }
  changed_.NotifyAll();
  return removed;
}

std::optional<size_t> MemoryPool::MissingClass() const {
  for (size_t step = 0; step < classes_.size(); ++step) {
    const size_t index = (first_ + step) % classes_.size();
    if (classes_[index].ready.size() < classes_[index].wanted.files) {
      return index;
    }
  }
  return std::nullopt;
}

absl::Status MemoryPool::BeginFile() {
  PoolClass wanted;
  {
    MutexLock lock(mutex_);
    const std::optional<size_t> missing = MissingClass();
    if (!missing.has_value()) {
      return absl::OkStatus();
    }
    making_index_ = *missing;
    wanted = classes_[making_index_].wanted;
    RNICD_ASSIGN_OR_RETURN(making_charge_, Charge::Take(node_, Resource::kMemoryBytes, wanted.file_bytes));
  }
  RNICD_ASSIGN_OR_RETURN(FreshMemory memory, FreshMemory::Create(os_, wanted.file_bytes, wanted.pages));
  making_.emplace(std::move(memory));
  return absl::OkStatus();
}

bool MemoryPool::KeepsMaking() const {
  MutexLock lock(mutex_);
  return making_charge_.amount() != 0;
}

void MemoryPool::FinishFile() {
  MutexLock lock(mutex_);
  if (making_charge_.amount() == 0) {
    return;
  }
  classes_[making_index_].ready.push_back(
      {.memory = std::move(*making_), .charge = std::move(making_charge_), .index = making_index_});
  ++refilled_files_;
  blocked_ = absl::OkStatus();
}

MemoryPool::Piece MemoryPool::RefillPiece() {
  if (making_.has_value() && !KeepsMaking()) {
    making_.reset();
  }
  if (!making_.has_value()) {
    if (const absl::Status begun = BeginFile(); !begun.ok()) {
      return Blocked(begun);
    }
    if (!making_.has_value()) {
      return {};
    }
  }
  const absl::StatusOr<bool> more = making_->MakeNext(kMadeAtOnce);
  if (!more.ok()) {
    return Blocked(more.status());
  }
  if (!*more) {
    FinishFile();
    making_.reset();
  }
  return {.bytes = kMadeAtOnce};
}

MemoryPool::Piece MemoryPool::Blocked(const absl::Status& why) {
  making_.reset();
  MutexLock lock(mutex_);
  making_charge_.Refund();
  first_ = making_index_ + 1;
  blocked_ = why;
  return {.blocked = true};
}

void MemoryPool::WaitForWork(bool blocked) {
  const auto retry = std::chrono::steady_clock::now() + kRetry;
  MutexLock lock(mutex_);
  while (!stopping_ && !MissingClass().has_value()) {
    changed_.Wait(mutex_);
  }
  while (!stopping_ && blocked && changed_.WaitUntil(mutex_, retry)) {
  }
}

void MemoryPool::Pause(std::chrono::nanoseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
  }
}

void MemoryPool::Wake() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
}

void MemoryPool::AddRefillTime(std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  refill_time_ += time;
}

MemoryPool::State MemoryPool::state() const {
  MutexLock lock(mutex_);
  State state = {.classes = {},
                 .served = served_,
                 .refilled_files = refilled_files_,
                 .refill_time = refill_time_,
                 .blocked = blocked_};
  for (const Class& each : classes_) {
    state.classes.push_back({.wanted = each.wanted, .ready = static_cast<uint32_t>(each.ready.size())});
  }
  return state;
}

}  // namespace rnicd::core
