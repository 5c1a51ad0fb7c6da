#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "daemon/core/request/node.h"
#include "daemon/core/ring/ring.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/rings/command_queue.h"
#include "daemon/rings/cpu_yield.h"
#include "daemon/rings/doorbell_watch.h"
#include "daemon/rings/entry_runner.h"
#include "daemon/rings/placement.h"
#include "daemon/rings/spin_budget.h"

namespace rnicd::rings {

// One thread that serves rings. A ring is awake, and polled in turns, or asleep, and then costs nothing until its
// doorbell rings. Tenants take turns, then the rings of a tenant; a turn is a bounded number of work requests. All work
// that a client causes counts against its session's rate, also a doorbell without an entry; a ring above the rate, or
// with many such doorbells, is paused, and its doorbell is muted.
// Threads: Attach, Detach, Counts and Post from any; the rest is the thread's own.
class RingThread {
 public:
  // The clock and what the budget and the place belong to outlive it. `yield` as in CpuYield. Errors: kUnavailable with
  // the system call.
  static absl::StatusOr<std::unique_ptr<RingThread>> Start(const Clock& clock, SpinBudget& budget, ThreadPlace place,
                                                           std::function<void()> yield);
  RingThread(const RingThread&) = delete;
  RingThread& operator=(const RingThread&) = delete;
  // All rings must have been detached.
  ~RingThread();

  void Attach(std::shared_ptr<core::Ring> ring);
  void Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done);
  core::RingCounts Counts() const;

  // Runs the command on the thread, between two turns.
  void Post(CommandQueue::Command command);

 private:
  // This thread's state of a ring.
  struct Served {
    std::shared_ptr<core::Ring> ring;
    // Null once it has gone.
    std::shared_ptr<core::Lease> session;
    uint64_t tenant = 0;
    enum class State : uint8_t { kAsleep, kAwake, kPaused, kEnded } state = State::kAsleep;
    // Work requests that are already counted against its session's rate.
    uint32_t credit = 0;
    Instant last_entry;
    // Time when a paused ring continues.
    Instant pause_end;
    // Times that it was woken since its last entry.
    uint32_t empty_wakeups = 0;
    // Awake because its client announced an entry, but no entry has been taken since.
    bool expects_entry = false;
    // The next event of its doorbell may be one that the thread itself caused.
    bool doorbell_renewed = false;
  };
  // Totals of RingCounts that other threads read.
  struct Totals {
    std::atomic<uint64_t> entries{0};
    std::atomic<uint64_t> requests{0};
    std::atomic<uint64_t> doorbells{0};
    std::atomic<uint64_t> empty_wakeups{0};
    std::atomic<uint64_t> pauses{0};
    std::atomic<uint64_t> broken{0};
    std::atomic<int64_t> spinning{0};
  };
  RingThread(const Clock& clock, SpinBudget& budget, ThreadPlace place, std::function<void()> yield,
             std::unique_ptr<DoorbellWatch> doorbells);

  void Run();
  void Add(const std::shared_ptr<core::Ring>& ring);
  void Remove(core::Ring* ring);
  // Waits for doorbells and commands while no ring is awake; otherwise polls them without waiting.
  void WaitForDoorbells();
  void OnDoorbell(Served& served);
  // None: no timeout.
  std::optional<std::chrono::milliseconds> LongestWait() const;
  // Gives every tenant with an awake ring one turn. False when no ring had an entry.
  bool ServeTurns();
  // One turn of a ring; false when it had nothing.
  bool ServeTurn(Served& served);
  bool TakeEntries(Served& served, const core::SessionGuard& guard);
  // Counts what a ring costs, in work requests, against the rate of its session; false when that is above its rate, and
  // the ring is paused.
  bool Admit(Served& served, uint32_t cost);
  void Pause(Served& served, std::chrono::nanoseconds wait);
  // Puts rings to sleep that have been empty for long enough, after a round in which none had an entry.
  void Rest();
  void PutToSleep(Served& served);
  // Pauses a ring that was woken too often without an entry; each pause is longer than the last, up to a limit.
  bool PausesAfterEmptyWakeups(Served& served);
  void SpendSpinning();
  // The processors of the clients that have submitted lately.
  ring::Processors BusyClients() const;
  void EndPauses();
  // `expects_entry`: as in Served.
  void Wake(Served& served, bool expects_entry);
  // Ends a ring whose indices are impossible.
  void Break(Served& served);
  void Leave(Served& served, Served::State next);

  const Clock& clock_;
  const std::unique_ptr<DoorbellWatch> doorbells_;
  EntryRunner runner_;
  SpinBudget& budget_;
  ThreadPlace place_;
  CpuYield cpu_yield_;
  std::unordered_map<core::Ring*, std::unique_ptr<Served>> served_;
  // Awake rings of each tenant that has any, in the order of their turns.
  std::map<uint64_t, std::deque<Served*>> awake_;
  // The earliest end first: a tenant may have thousands.
  std::set<std::pair<Instant, Served*>> paused_;
  Instant now_;
  Instant looked_;
  Totals totals_;

  CommandQueue commands_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rnicd::rings
