#include "daemon/rings/ring_thread.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ring/processor.h"

namespace rnicd::rings {
namespace {

// Limit of work requests in one turn; a longer chain is a turn by itself. At most a hundred microseconds of one
// client's work while others wait.
constexpr uint32_t kRequestsPerTurn = 64;
// Work requests through a ring that cost the daemon about as much as a call, which is what rates count.
constexpr uint32_t kRequestsPerCall = 32;
// Cost of a wake-up without an entry, in work requests: some system calls, and a place in epoll.
constexpr uint32_t kEmptyWakeupCost = 8;
// Limit of consecutive wake-ups without an entry. Some are normal: a client may ring for an entry that was just taken.
constexpr uint32_t kEmptyWakeupsInARow = 16;
constexpr std::chrono::milliseconds kFirstEmptyPause{1};
constexpr uint32_t kEmptyPauseDoublings = 7;
// How often a thread with awake rings polls the doorbells of the others.
constexpr std::chrono::microseconds kLookEvery{20};

}  // namespace

absl::StatusOr<std::unique_ptr<RingThread>> RingThread::Start(const Clock& clock, SpinBudget& budget, ThreadPlace place,
                                                              std::function<void()> yield) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DoorbellWatch> doorbells, DoorbellWatch::Create());
  std::unique_ptr<RingThread> thread(new RingThread(clock, budget, place, std::move(yield), std::move(doorbells)));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  return thread;
}

RingThread::RingThread(const Clock& clock, SpinBudget& budget, ThreadPlace place, std::function<void()> yield,
                       std::unique_ptr<DoorbellWatch> doorbells)
    : clock_(clock),
      doorbells_(std::move(doorbells)),
      budget_(budget),
      place_(place),
      cpu_yield_(clock, std::move(yield)),
      now_(clock.Now()),
      looked_(now_) {}

RingThread::~RingThread() {
  Post([this] { stopping_ = true; });
  thread_.join();
}

void RingThread::Attach(std::shared_ptr<core::Ring> ring) {
  Post([this, ring = std::move(ring)] { Add(ring); });
}

void RingThread::Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done) {
  Post([this, held = ring, done = std::move(done)]() mutable {
    Remove(held.get());
    // Released before the session continues: `done` reports that nothing is held any more.
    held.reset();
    done();
  });
}

core::RingCounts RingThread::Counts() const {
  return {.entries = totals_.entries.load(),
          .requests = totals_.requests.load(),
          .doorbells = totals_.doorbells.load(),
          .refused = runner_.refused(),
          .empty_wakeups = totals_.empty_wakeups.load(),
          .pauses = totals_.pauses.load(),
          .broken = totals_.broken.load(),
          .spinning = std::chrono::nanoseconds(totals_.spinning.load())};
}

void RingThread::Post(CommandQueue::Command command) {
  commands_.Add(std::move(command));
  doorbells_->Interrupt();
}

void RingThread::Run() {
  for (commands_.RunAll(); !stopping_; commands_.RunAll()) {
    now_ = clock_.Now();
    EndPauses();
    WaitForDoorbells();
    if (!ServeTurns()) {
      Rest();
    }
    cpu_yield_.Run(now_);
    if (place_.MayMove(now_)) {
      place_.Move(BusyClients(), now_);
    }
  }
}

void RingThread::Add(const std::shared_ptr<core::Ring>& ring) {
  auto served = std::make_unique<Served>();
  served->ring = ring;
  served->session = ring->session();
  if (served->session == nullptr) {
    return;
  }
  served->tenant = served->session->tenant().number();
  served->last_entry = now_;
  if (!doorbells_->Add(ring->doorbell(), served.get())) {
    ring->End(ErrorReason::RINGS_UNAVAILABLE);
    return;
  }
  budget_.AddRing(served->tenant);
  served_.emplace(ring.get(), std::move(served));
}

void RingThread::Remove(core::Ring* ring) {
  const auto found = served_.find(ring);
  if (found == served_.end()) {
    return;
  }
  Served& served = *found->second;
  Leave(served, Served::State::kEnded);
  doorbells_->Remove(ring->doorbell());
  budget_.RemoveRing(served.tenant);
  served_.erase(found);
}

std::optional<std::chrono::milliseconds> RingThread::LongestWait() const {
  if (!awake_.empty()) {
    return std::chrono::milliseconds(0);
  }
  if (paused_.empty()) {
    return std::nullopt;
  }
  return std::chrono::ceil<std::chrono::milliseconds>(paused_.begin()->first - now_);
}

void RingThread::WaitForDoorbells() {
  if (!awake_.empty() && now_ - looked_ < kLookEvery) {
    return;
  }
  if (awake_.empty()) {
    cpu_yield_.Left();
  }
  doorbells_->Wait(LongestWait(), [this](DoorbellWatch::Owner owner) { OnDoorbell(*static_cast<Served*>(owner)); });
  now_ = clock_.Now();
  looked_ = now_;
}

void RingThread::OnDoorbell(Served& served) {
  const bool renewed = std::exchange(served.doorbell_renewed, false);
  if (served.state == Served::State::kAsleep) {
    totals_.doorbells.fetch_add(1, std::memory_order_relaxed);
    Wake(served, !renewed);
  }
}

void RingThread::Wake(Served& served, bool expects_entry) {
  served.state = Served::State::kAwake;
  served.expects_entry = expects_entry;
  served.ring->end().StayAwake();
  served.ring->end().SetCpu(ring::CurrentCpu());
  awake_[served.tenant].push_back(&served);
}

void RingThread::Leave(Served& served, Served::State next) {
  if (const auto line = awake_.find(served.tenant); line != awake_.end()) {
    std::erase(line->second, &served);
    if (line->second.empty()) {
      awake_.erase(line);
    }
  }
  paused_.erase({served.pause_end, &served});
  served.state = next;
}

bool RingThread::ServeTurns() {
  bool progress = false;
  // A turn may take its ring, or its whole line, out of the map.
  for (auto line = awake_.begin(); line != awake_.end();) {
    Served& served = *line->second.front();
    std::rotate(line->second.begin(), line->second.begin() + 1, line->second.end());
    ++line;
    progress = ServeTurn(served) || progress;
  }
  return progress;
}

bool RingThread::ServeTurn(Served& served) {
  ring::Submission next;
  switch (served.ring->end().Peek(&next)) {
    case ring::DaemonEnd::Next::kNothing:
      return false;
    case ring::DaemonEnd::Next::kBroken:
      Break(served);
      return true;
    case ring::DaemonEnd::Next::kEntry:
      break;
  }
  const absl::StatusOr<core::SessionGuard> guard = served.session->Begin();
  if (!guard.ok()) {
    // The end of the session detaches it.
    Leave(served, Served::State::kEnded);
    doorbells_->Remove(served.ring->doorbell());
    return true;
  }
  return TakeEntries(served, *guard);
}

bool RingThread::TakeEntries(Served& served, const core::SessionGuard& guard) {
  uint64_t entries = 0;
  uint64_t requests = 0;
  uint32_t spent = 0;
  while (spent < kRequestsPerTurn) {
    ring::Submission entry;
    const ring::DaemonEnd::Next next = served.ring->end().Peek(&entry);
    if (next == ring::DaemonEnd::Next::kBroken) {
      Break(served);
      break;
    }
    const uint32_t cost = EntryRunner::CostOf(entry);
    if (next == ring::DaemonEnd::Next::kNothing || !Admit(served, cost)) {
      break;
    }
    runner_.Run({.ring = served.ring, .session = served.session.get(), .submitted = entry}, guard);
    ++entries;
    requests += EntryRunner::RequestsOf(entry);
    spent += cost;
  }
  totals_.entries.fetch_add(entries, std::memory_order_relaxed);
  totals_.requests.fetch_add(requests, std::memory_order_relaxed);
  if (entries != 0) {
    served.last_entry = now_;
    if (served_.size() > 1 && served.ring->end().client_cpu() == ring::CurrentCpu()) {
      cpu_yield_.ClientWaits(now_);
      place_.ClientIsHere(now_);
    }
    served.expects_entry = false;
    served.empty_wakeups = 0;
  }
  return entries != 0;
}

bool RingThread::Admit(Served& served, uint32_t cost) {
  while (served.credit < cost) {
    std::chrono::nanoseconds wait{0};
    if (!served.session->AdmitCall(&wait).ok()) {
      Pause(served, wait);
      return false;
    }
    served.credit += kRequestsPerCall;
  }
  served.credit -= cost;
  return true;
}

void RingThread::Pause(Served& served, std::chrono::nanoseconds wait) {
  Leave(served, Served::State::kPaused);
  doorbells_->Mute(served.ring->doorbell(), &served);
  served.pause_end = now_ + wait;
  paused_.emplace(served.pause_end, &served);
  totals_.pauses.fetch_add(1, std::memory_order_relaxed);
}

// The ring may have an entry whose doorbell was muted.
void RingThread::EndPauses() {
  while (!paused_.empty() && paused_.begin()->first <= now_) {
    Served& served = *paused_.begin()->second;
    Leave(served, Served::State::kAsleep);
    doorbells_->Unmute(served.ring->doorbell(), &served);
    served.doorbell_renewed = true;
    Wake(served, false);
  }
}

void RingThread::Break(Served& served) {
  Leave(served, Served::State::kEnded);
  doorbells_->Remove(served.ring->doorbell());
  totals_.broken.fetch_add(1, std::memory_order_relaxed);
  served.ring->End(ErrorReason::RING_BROKEN);
  served.session->ReportDecision("ring.end", "ring_id=" + std::to_string(served.ring->id().value),
                                 MakeError(ErrorReason::RING_BROKEN));
}

void RingThread::Rest() {
  std::vector<Served*> idle;
  const bool shared = place_.IsAClients(now_);
  for (const auto& [tenant, line] : awake_) {
    for (Served* served : line) {
      if (shared || !budget_.Allows(tenant, served->ring->end().client_cpu(), served->last_entry, now_)) {
        idle.push_back(served);
      }
    }
  }
  for (Served* served : idle) {
    PutToSleep(*served);
  }
  if (!awake_.empty()) {
    SpendSpinning();
  }
}

// A client that submits and withdraws an entry pays the same as one that rings the doorbell without an entry.
void RingThread::PutToSleep(Served& served) {
  if (std::exchange(served.expects_entry, false)) {
    totals_.empty_wakeups.fetch_add(1, std::memory_order_relaxed);
    if (!Admit(served, kEmptyWakeupCost) || PausesAfterEmptyWakeups(served)) {
      return;
    }
  }
  if (served.ring->end().PrepareToSleep()) {
    served.ring->end().StayAwake();
    served.expects_entry = true;
  } else {
    Leave(served, Served::State::kAsleep);
  }
}

// Limits the cost of a client without a rate limit.
bool RingThread::PausesAfterEmptyWakeups(Served& served) {
  if (++served.empty_wakeups <= kEmptyWakeupsInARow) {
    return false;
  }
  const uint32_t doublings = std::min(served.empty_wakeups - kEmptyWakeupsInARow - 1, kEmptyPauseDoublings);
  Pause(served, kFirstEmptyPause * (1U << doublings));
  return true;
}

ring::Processors RingThread::BusyClients() const {
  ring::Processors processors;
  for (const auto& [ring, served] : served_) {
    const uint32_t cpu = ring->end().client_cpu();
    if (now_ - served->last_entry < ThreadPlace::kPeriod && cpu != 0 && cpu <= processors.size()) {
      processors.set(cpu - 1);
    }
  }
  return processors;
}

void RingThread::SpendSpinning() {
  ring::Relax();
  const Instant then = clock_.Now();
  const std::chrono::nanoseconds spent = then - now_;
  for (const auto& [tenant, line] : awake_) {
    budget_.Spend(tenant, spent / static_cast<int64_t>(awake_.size()));
  }
  totals_.spinning.fetch_add(spent.count(), std::memory_order_relaxed);
}

}  // namespace rnicd::rings
