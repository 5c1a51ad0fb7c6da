#include "daemon/core/memory/memory_pool.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/units.h"

namespace rnicd::core {
namespace {

// Bytes made, or mapped, in one step: a fraction of a millisecond.
constexpr uint64_t kMadeAtOnce = uint64_t{1} << 20;
// A file serves memory of at least half its size, to limit the pages that are made in vain, and at most twice its size.
constexpr uint64_t kWithinFactor = 2;
constexpr std::chrono::seconds kRetry{1};
// Ten times the time in which a client fetches, maps and registers 10 GiB in pages of 2 MiB.
constexpr std::chrono::milliseconds kTimeToMap{50};

bool Serves(const FreshMemory& memory, uint64_t size, const PageChoice& pages) {
  return memory.pages().page_bytes == pages.page_bytes &&
         (!pages.numa_node.has_value() || memory.pages().numa_node == pages.numa_node) &&
         memory.size() / kWithinFactor <= size && size / kWithinFactor <= memory.size();
}

void MoveLast(auto& from, auto& to) {
  to.push_back(std::move(from.back()));
  from.pop_back();
}

uint64_t Distance(uint64_t one, uint64_t other) { return one < other ? other - one : one - other; }

}  // namespace

MemoryPool::MemoryPool(Os& os, std::shared_ptr<Ledger> node, const std::vector<PoolClass>& classes)
    : os_(os), node_(std::move(node)) {
  MutexLock lock(mutex_);
  served_.push_back({.page_bytes = kNdkPageBytes});
  for (PoolClass wanted : classes) {
    wanted.file_bytes = OccupiedBytes(os_, wanted.file_bytes);
    classes_.push_back({.wanted = wanted});
    if (std::ranges::find(served_, wanted.pages.page_bytes, &Service::page_bytes) == served_.end()) {
      served_.push_back({.page_bytes = wanted.pages.page_bytes});
    }
  }
  // The largest pages first.
  std::ranges::sort(served_, std::greater(), &Service::page_bytes);
}

absl::StatusOr<MemoryPool::Given> MemoryPool::Give(uint64_t bytes, const std::optional<PageWish>& wish,
                                                   absl::FunctionRef<absl::Status()> charge) {
  MutexLock lock(mutex_);
  const auto [nearest, service] = wish.has_value() ? Find(bytes, *wish) : std::pair<Class*, Service*>();
  Evicted parted;
  if (nearest != nullptr) {
    MoveLast(nearest->ready, parted.files);
  }
  EvictFor(OccupiedBytes(os_, bytes), parted);
  RNICD_RETURN_IF_ERROR(Swap(parted, charge));
  Given given;
  for (File& file : parted.files) {
    given.freed.push_back(std::move(file.memory));
  }
  if (nearest != nullptr) {
    given.ready.emplace(std::move(given.freed.front()));
    given.freed.erase(given.freed.begin());
    ++service->hits;
    if (service->page_bytes != kNdkPageBytes) {
      mapped_at_ = std::chrono::steady_clock::now() + kTimeToMap;
    }
  } else if (wish.has_value()) {
    CountMiss(wish->page_bytes.value_or(kNdkPageBytes));
  }
  changed_.NotifyAll();
  return given;
}

std::vector<FreshMemory> MemoryPool::Suspend() {
  std::vector<FreshMemory> freed;
  MutexLock lock(mutex_);
  making_charge_.Refund();
  for (Class& each : classes_) {
    each.suspended = true;
    for (File& file : each.ready) {
      freed.push_back(std::move(file.memory));
    }
    each.ready.clear();
  }
  return freed;
}

void MemoryPool::Resume() {
  {
    MutexLock lock(mutex_);
    for (Class& each : classes_) {
      each.suspended = false;
    }
  }
  changed_.NotifyAll();
}

void MemoryPool::CountMiss(uint64_t page_bytes) {
  const auto missed = std::ranges::find(served_, page_bytes, &Service::page_bytes);
  if (missed != served_.end()) {
    ++missed->misses;
  }
}

std::pair<MemoryPool::Class*, MemoryPool::Service*> MemoryPool::Find(uint64_t size, const PageWish& wish) {
  for (Service& service : served_) {
    if (wish.page_bytes.value_or(service.page_bytes) == service.page_bytes && size % service.page_bytes == 0) {
      Class* const nearest = Nearest(size, {.page_bytes = service.page_bytes, .numa_node = wish.numa_node});
      if (nearest != nullptr) {
        return {nearest, &service};
      }
    }
  }
  return {nullptr, nullptr};
}

MemoryPool::Class* MemoryPool::Nearest(uint64_t size, const PageChoice& pages) {
  Class* best = nullptr;
  for (Class& candidate : classes_) {
    if (!candidate.ready.empty() && Serves(candidate.ready.back().memory, size, pages) &&
        (best == nullptr || Distance(candidate.wanted.file_bytes, size) < Distance(best->wanted.file_bytes, size))) {
      best = &candidate;
    }
  }
  return best;
}

void MemoryPool::EvictFor(uint64_t bytes, Evicted& parted) {
  const uint64_t limit = node_->limit(Resource::kMemoryBytes);
  const uint64_t used = node_->used(Resource::kMemoryBytes);
  if (limit == 0 || bytes > limit || used <= limit - bytes) {
    return;
  }
  const uint64_t missing = used - (limit - bytes);
  uint64_t room = 0;
  for (const File& file : parted.files) {
    room += file.charge.amount();
  }
  uint64_t all = room + making_charge_.amount();
  for (const Class& each : classes_) {
    all += each.ready.size() * each.wanted.file_bytes;
  }
  if (room >= missing || all < missing) {
    return;
  }
  room += making_charge_.amount();
  parted.making = std::move(making_charge_);
  for (Class& each : classes_) {
    for (; room < missing && !each.ready.empty(); room += each.wanted.file_bytes) {
      MoveLast(each.ready, parted.files);
    }
  }
}

absl::Status MemoryPool::Swap(Evicted& parted, absl::FunctionRef<absl::Status()> charge) {
  const uint64_t making = parted.making.amount();
  parted.making.Refund();
  for (File& file : parted.files) {
    file.charge.Refund();
  }
  const absl::Status charged = charge();
  if (charged.ok()) {
    return charged;
  }
  // There is room: all users of it take it under this lock.
  const auto again = [this](uint64_t amount) {
    absl::StatusOr<Charge> taken = Charge::Take(node_, Resource::kMemoryBytes, amount);
    return taken.ok() ? *std::move(taken) : Charge();
  };
  if (making != 0) {
    making_charge_ = again(making);
  }
  for (File& file : parted.files) {
    file.charge = again(file.memory.size());
    std::vector<File>& ready = classes_[file.index].ready;
    ready.push_back(std::move(file));
  }
  return charged;
}

std::optional<size_t> MemoryPool::MissingClass() const {
  for (size_t step = 0; step < classes_.size(); ++step) {
    const size_t index = (first_ + step) % classes_.size();
    const Class& candidate = classes_[index];
    if (!candidate.suspended && candidate.ready.size() < candidate.wanted.files) {
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

void MemoryPool::LetClientsMap() {
  MutexLock lock(mutex_);
  while (!stopping_ && std::chrono::steady_clock::now() < mapped_at_) {
    (void)changed_.WaitUntil(mutex_, mapped_at_);
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
