#include "daemon/health/prober.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/status.h"

namespace rnicd::health {
namespace {

// Longest wait of a reader of the number of regions for a moment without a probe. A probe takes microseconds on a
// healthy card, and readers are scrapes and operators.
constexpr std::chrono::milliseconds kQuietMoment{100};

}  // namespace

bool AnyHealthy(const std::vector<AdapterHealth>& adapters) {
  return std::any_of(adapters.begin(), adapters.end(), [](const AdapterHealth& adapter) { return adapter.healthy; });
}

std::unique_ptr<Prober> Prober::Start(provider::Provider& provider, Os& os, const Clock& clock, ProberOptions options) {
  auto prober = std::unique_ptr<Prober>(new Prober(provider, os, clock, std::move(options)));
  MutexLock lock(prober->mutex_);
  while (!prober->settled_) {
    prober->moved_.Wait(prober->mutex_);
  }
  return prober;
}

Prober::Prober(provider::Provider& provider, Os& os, const Clock& clock, ProberOptions options)
    : provider_(provider), os_(os), clock_(clock), options_(std::move(options)) {
  FollowList();
  evaluator_ = std::thread([this] { EvaluateLoop(); });
}

Prober::~Prober() {
  Stop(clock_.Now());
  evaluator_.join();
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    for (Card& card : cards_) {
      threads.push_back(std::move(card.thread));
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

bool Prober::Stop(Instant deadline) {
  MutexLock lock(mutex_);
  stopping_ = true;
  stop_.NotifyAll();
  moved_.NotifyAll();
  while (probing_ > 0 && clock_.WaitUntil(moved_, mutex_, deadline)) {
  }
  return probing_ == 0;
}

void Prober::Rescan() {
  MutexLock lock(mutex_);
  rescan_ = true;
  moved_.NotifyAll();
}

void Prober::AddCard(const std::string& adapter) {
  Card& card = cards_.emplace_back(provider_, os_, adapter, options_.timeout);
  card.thread = std::thread([this, &card] { ProbeLoop(card); });
}

void Prober::FollowList() {
  const std::vector<provider::AdapterDescription> listed = provider_.ListAdapters();
  MutexLock lock(mutex_);
  for (Card& card : cards_) {
    const auto has_name = [&card](const auto& adapter) { return adapter.name == card.probe.adapter(); };
    card.removed = card.removed || std::ranges::none_of(listed, has_name);
    card.due = true;
  }
  for (const provider::AdapterDescription& adapter : listed) {
    const auto is_its = [&adapter](const Card& card) { return !card.removed && card.probe.adapter() == adapter.name; };
    if (!stopping_ && std::ranges::none_of(cards_, is_its)) {
      AddCard(adapter.name);
    }
  }
  stop_.NotifyAll();
}

// Their threads have ended, or are about to.
void Prober::JoinRemoved() {
  std::list<Card> over;
  MutexLock lock(mutex_);
  for (auto card = cards_.begin(); card != cards_.end();) {
    const auto next = std::next(card);
    if (card->removed && card->over) {
      over.splice(over.end(), cards_, card);
    }
    card = next;
  }
  for (Card& card : over) {
    card.thread.join();
  }
}

void Prober::ProbeLoop(Card& card) {
  do {
    ProbeOnce(card);
  } while (SleepUntil(card, clock_.Now() + options_.interval));
  {
    MutexLock lock(mutex_);
    ++probing_;
  }
  card.probe.Close();
  MutexLock lock(mutex_);
  --probing_;
  card.over = true;
  moved_.NotifyAll();
}

void Prober::ProbeOnce(Card& card) {
  {
    MutexLock lock(mutex_);
    if (stopping_) {
      return;
    }
    ++probing_;
    card.record.Began(clock_.Now());
    moved_.NotifyAll();
  }
  const absl::Status status = card.probe.Run();
  MutexLock lock(mutex_);
  --probing_;
  card.record.Ended(clock_.Now(), status);
  moved_.NotifyAll();
}

// False when no more probes must begin.
bool Prober::SleepUntil(Card& card, Instant due) {
  MutexLock lock(mutex_);
  while (!stopping_ && !card.removed && !card.due && clock_.Now() < due) {
    clock_.WaitUntil(stop_, mutex_, due);
  }
  card.due = false;
  return !stopping_ && !card.removed;
}

void Prober::EvaluateLoop() {
  bool ready = false;
  for (auto changes = WaitForChanges(ready); changes.has_value(); changes = WaitForChanges(ready)) {
    for (const AdapterHealth& change : *changes) {
      if (options_.on_change != nullptr) {
        options_.on_change(change, ready);
      }
    }
    JoinRemoved();
    if (TakeRescan()) {
      FollowList();
    }
  }
}

bool Prober::TakeRescan() {
  MutexLock lock(mutex_);
  return std::exchange(rescan_, false);
}

// Changes and readiness belong to the same moment; no changes when there is something else to do. Empty when no more
// will follow.
std::optional<std::vector<AdapterHealth>> Prober::WaitForChanges(bool& ready) {
  MutexLock lock(mutex_);
  while (true) {
    std::vector<AdapterHealth> changes = TakeChanges(clock_.Now());
    const auto is_over = [](const Card& card) { return card.removed && card.over; };
    if (!changes.empty() || rescan_ || std::ranges::any_of(cards_, is_over)) {
      ready = AnyHealthy(ReadLocked());
      return changes;
    }
    if (stopping_) {
      return std::nullopt;
    }
    if (!settled_ && std::ranges::all_of(cards_, [](const Card& card) { return card.reported || card.removed; })) {
      settled_ = true;
      moved_.NotifyAll();
    }
    WaitForProbe();
  }
}

std::vector<AdapterHealth> Prober::TakeChanges(Instant now) {
  std::vector<AdapterHealth> changes;
  for (Card& card : cards_) {
    if (card.removed) {
      if (std::exchange(card.reported, false)) {
        changes.push_back(
            {.adapter = card.probe.adapter(), .status = MakeError(ErrorReason::DEVICE_REMOVED), .since = now});
      }
      continue;
    }
    card.record.CheckTimeout(now);
    const AdapterHealth& health = card.record.health();
    if (card.record.evaluated() && (!card.reported || card.reported_healthy != health.healthy)) {
      card.reported = true;
      card.reported_healthy = health.healthy;
      changes.push_back(health);
    }
  }
  return changes;
}

// Waits until a probe begins, ends or times out.
void Prober::WaitForProbe() {
  std::optional<Instant> first;
  for (const Card& card : cards_) {
    const std::optional<Instant> late_at = card.removed ? std::nullopt : card.record.late_at();
    if (late_at.has_value() && (!first.has_value() || *late_at < *first)) {
      first = late_at;
    }
  }
  if (first.has_value()) {
    clock_.WaitUntil(moved_, mutex_, *first);
  } else {
    moved_.Wait(mutex_);
  }
}

std::vector<AdapterHealth> Prober::Read() const {
  MutexLock lock(mutex_);
  return ReadLocked();
}

std::vector<AdapterHealth> Prober::ReadLocked() const {
  std::vector<AdapterHealth> adapters;
  adapters.reserve(cards_.size());
  for (const Card& card : cards_) {
    if (!card.removed) {
      adapters.push_back(card.record.health());
    }
  }
  return adapters;
}

// Under the lock no probe begins, so that a count read while none is running does not include any.
uint64_t Prober::RegionsOfOthers() const {
  const Instant limit = clock_.Now() + kQuietMoment;
  MutexLock lock(mutex_);
  while (probing_ > 0 && clock_.WaitUntil(moved_, mutex_, limit)) {
  }
  const auto own = static_cast<uint64_t>(
      std::count_if(cards_.begin(), cards_.end(), [](const Card& card) { return card.probe.holds_region(); }));
  const uint64_t live = provider_.live_regions();
  return live - std::min(own, live);
}

}  // namespace rnicd::health
