#include "daemon/health/prober.h"

#include <algorithm>
#include <optional>
#include <utility>

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
    : provider_(provider), clock_(clock), options_(std::move(options)) {
  MutexLock lock(mutex_);
  for (const provider::AdapterDescription& adapter : provider.ListAdapters()) {
    cards_.emplace_back(provider, os, adapter.name, options_.timeout);
  }
  for (Card& card : cards_) {
    card.thread = std::thread([this, &card] { ProbeLoop(card); });
  }
  evaluator_ = std::thread([this] { EvaluateLoop(); });
}

Prober::~Prober() {
  Stop(clock_.Now());
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
  evaluator_.join();
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

void Prober::ProbeLoop(Card& card) {
  do {
    ProbeOnce(card);
  } while (SleepUntil(clock_.Now() + options_.interval));
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
bool Prober::SleepUntil(Instant due) {
  MutexLock lock(mutex_);
  while (!stopping_ && clock_.Now() < due) {
    clock_.WaitUntil(stop_, mutex_, due);
  }
  return !stopping_;
}

void Prober::EvaluateLoop() {
  bool ready = false;
  for (std::vector<AdapterHealth> changes = WaitForChanges(ready); !changes.empty(); changes = WaitForChanges(ready)) {
    for (const AdapterHealth& change : changes) {
      if (options_.on_change != nullptr) {
        options_.on_change(change, ready);
      }
    }
  }
}

// Changes and readiness belong to the same moment. Empty when no more will follow.
std::vector<AdapterHealth> Prober::WaitForChanges(bool& ready) {
  MutexLock lock(mutex_);
  while (true) {
    std::vector<AdapterHealth> changes = TakeChanges(clock_.Now());
    if (!changes.empty() || stopping_) {
      ready = AnyHealthy(ReadLocked());
      return changes;
    }
    if (!settled_ && std::all_of(cards_.begin(), cards_.end(), [](const Card& card) { return card.reported; })) {
      settled_ = true;
      moved_.NotifyAll();
    }
    WaitForProbe();
  }
}

std::vector<AdapterHealth> Prober::TakeChanges(Instant now) {
  std::vector<AdapterHealth> changes;
  for (Card& card : cards_) {
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
    const std::optional<Instant> late_at = card.record.late_at();
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
    adapters.push_back(card.record.health());
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
