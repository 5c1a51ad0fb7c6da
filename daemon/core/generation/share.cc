#include "daemon/core/generation/share.h"

#include <algorithm>
#include <utility>

namespace rnicd::core {
namespace {

// About 10 s. A program that releases and takes again in turn keeps what it needs for that.
constexpr uint32_t kIdleReviews = 50;

constexpr uint64_t kSpareOf = 8;

constexpr size_t PlaceOf(Resource resource) { return static_cast<size_t>(resource); }

// What neither generation holds, as far as this one knows.
uint64_t FreeOf(const Ledger& ledger, Resource resource) {
  const uint64_t limit = ledger.limit(resource);
  return limit - std::min(limit, ledger.used(resource));
}

}  // namespace

Share::Share(HeldUse of, std::shared_ptr<Ledger> ledger, std::shared_ptr<Tenant> tenant)
    : of_(std::move(of)), ledger_(std::move(ledger)), tenant_(std::move(tenant)) {
  for (size_t place = 0; place < kResourceCount; ++place) {
    const auto resource = static_cast<Resource>(place);
    const uint64_t own = ledger_->own(resource);
    const uint64_t half = Grows(resource) ? FreeOf(*ledger_, resource) / 2 : 0;
    of_.held[place] = ledger_->limit(resource) != 0 ? ledger_->SetCap(resource, own + half) : own;
  }
  sessions_ = ledger_->own(Resource::kSessions);
}

HeldUse Share::told() const {
  HeldUse told = of_;
  for (size_t place = 0; place < kResourceCount; ++place) {
    told.held[place] = std::max(told.held[place], asked_[place]);
  }
  return told;
}

// No session is opened here.
bool Share::Grows(Resource resource) const {
  return resource != Resource::kSessions && ledger_->own(Resource::kSessions) != 0;
}

// An eighth of what is free: the newer generation gets the rest, because it cannot ask.
uint64_t Share::SpareOf(Resource resource) const { return Grows(resource) ? FreeOf(*ledger_, resource) / kSpareOf : 0; }

Share::Moves Share::Review() {
  Moves moves;
  const uint64_t sessions = ledger_->own(Resource::kSessions);
  const bool fell = sessions == 0 || sessions < sessions_;
  sessions_ = sessions;
  // One question at a time, so that an answer is not taken for that of another.
  const bool may_ask = !waits();
  for (size_t place = 0; place < kResourceCount; ++place) {
    // What was asked for is not lowered meanwhile, because the answer would not know of that.
    if (may_ask || asked_[place] == 0) {
      Review(static_cast<Resource>(place), fell, may_ask, moves);
    }
  }
  return moves;
}

void Share::Review(Resource resource, bool fell, bool may_ask, Moves& moves) {
  if (ledger_->cap(resource) == Ledger::kNoCap) {
    FollowUse(resource, may_ask, moves);
    return;
  }
  uint64_t& told = of_.held[PlaceOf(resource)];
  uint32_t& idle = idle_[PlaceOf(resource)];
  const uint64_t own = ledger_->own(resource);
  const uint64_t spare = SpareOf(resource);
  const uint64_t refused = may_ask ? ledger_->TakeRefused(resource) : 0;
  idle = told > own + 2 * spare ? idle + 1 : 0;
  if (may_ask && (refused > told || own + spare / 2 > told)) {
    Ask(resource, std::max(refused, own + spare), moves);
  } else if (idle > kIdleReviews || (idle > 0 && fell)) {
    const uint64_t before = std::exchange(told, ledger_->SetCap(resource, own + spare));
    moves.shrunk = moves.shrunk || told < before;
    idle = 0;
  }
}

// Without a limit nothing is refused here. It is told for those who look at the newer generation's counts.
void Share::FollowUse(Resource resource, bool may_ask, Moves& moves) {
  uint64_t& told = of_.held[PlaceOf(resource)];
  const uint64_t own = ledger_->own(resource);
  if (own > told && may_ask) {
    Ask(resource, own, moves);
  } else if (own < told) {
    told = own;
    moves.shrunk = true;
  }
}

void Share::Ask(Resource resource, uint64_t most, Moves& moves) {
  asked_[PlaceOf(resource)] = most;
  idle_[PlaceOf(resource)] = 0;
  moves.wanted = true;
}

void Share::Grant(const HeldUse& lease) {
  for (size_t place = 0; place < kResourceCount; ++place) {
    uint64_t& told = of_.held[place];
    if (std::exchange(asked_[place], 0) != 0 && lease.held[place] > told) {
      told = lease.held[place];
      const auto resource = static_cast<Resource>(place);
      if (ledger_->cap(resource) != Ledger::kNoCap) {
        ledger_->SetCap(resource, told);
      }
    }
  }
}

void Share::Lift() {
  for (size_t place = 0; place < kResourceCount; ++place) {
    ledger_->SetCap(static_cast<Resource>(place), Ledger::kNoCap);
  }
}

bool Share::waits() const {
  return std::any_of(asked_.begin(), asked_.end(), [](uint64_t asked) { return asked != 0; });
}

bool Share::over() const {
  for (size_t place = 0; place < kResourceCount; ++place) {
    if (ledger_->own(static_cast<Resource>(place)) != 0 || of_.held[place] != 0) {
      return false;
    }
  }
  return !waits();
}

}  // namespace rnicd::core
