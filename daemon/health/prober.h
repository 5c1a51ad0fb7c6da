#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/system/os.h"
#include "daemon/health/adapter_probe.h"
#include "daemon/health/probe_record.h"
#include "provider/api/device.h"

namespace rnicd::health {

// True if at least one adapter is healthy: a node that lost one of two cards still serves the sessions on the other.
bool AnyHealthy(const std::vector<AdapterHealth>& adapters);

struct ProberOptions {
  // Time from the end of a probe to the next.
  std::chrono::milliseconds interval{1000};
  // Duration from which a probe makes its adapter unhealthy while it is still running. Interval and timeout together
  // bound the time until a card that hangs is detected.
  std::chrono::milliseconds timeout{3000};
  // Called for the first result of each adapter and for each change, in their order, one at a time; for an adapter that
  // was removed with DEVICE_REMOVED. `ready` is AnyHealthy of all adapters at that moment. It may call the prober, and
  // must not wait for it.
  std::function<void(const AdapterHealth& adapter, bool ready)> on_change;
};

// Probes every adapter of a provider in a loop. Each adapter has its own thread, so that a card that hangs does not
// hide the others; one more thread evaluates all of them, including those that hang, and follows cards that come and
// go.
// Lifetime: provider, os and clock outlive it. A call into a card cannot be cancelled, so the destructor waits for the
//           running probes; a caller that must not wait calls Stop first.
// Threads:  safe.
class Prober {
 public:
  // Returns when every adapter has a result, which takes at most the timeout.
  static std::unique_ptr<Prober> Start(provider::Provider& provider, Os& os, const Clock& clock, ProberOptions options);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // The provider has other cards than before: looks at its list soon, and lets go of those that were removed. Calls no
  // card: for the thread that reports it.
  void Rescan();

  // Health of all adapters, in the order in which they came.
  std::vector<AdapterHealth> Read() const;
  bool ready() const { return AnyHealthy(Read()); }

  // The provider's live regions without those of the probes. Normally exact, because it waits for the moment between
  // two probes. Where cards are so slow that this takes too long, it counts by the calls that have returned, and is one
  // too high or too low per card that is about to return.
  uint64_t RegionsOfOthers() const;

  // Begins no more probes and waits for running ones; false when one is still running at the deadline.
  bool Stop(Instant deadline);

 private:
  struct Card {
    Card(provider::Provider& provider, Os& os, const std::string& adapter, std::chrono::nanoseconds timeout)
        : probe(provider, os, adapter), record(adapter, timeout) {}

    AdapterProbe probe;
    // Guarded by the prober's lock.
    ProbeRecord record;
    bool reported = false;
    bool reported_healthy = false;
    // Not in the provider's list any more; its thread ends.
    bool removed = false;
    // Probed at once: its card may be another one.
    bool due = false;
    // Its thread does nothing more.
    bool over = false;
    std::thread thread;
  };

  Prober(provider::Provider& provider, Os& os, const Clock& clock, ProberOptions options);

  // Main loop of one card's thread, until Stop.
  void ProbeLoop(Card& card);
  void ProbeOnce(Card& card);
  bool SleepUntil(Card& card, Instant due);
  void AddCard(const std::string& adapter) RNICD_REQUIRES(mutex_);
  // Compares the provider's list with the cards.
  void FollowList();
  bool TakeRescan();
  void JoinRemoved();
  // Main loop of the evaluating thread, until Stop.
  void EvaluateLoop();
  std::optional<std::vector<AdapterHealth>> WaitForChanges(bool& ready);
  std::vector<AdapterHealth> TakeChanges(Instant now) RNICD_REQUIRES(mutex_);
  void WaitForProbe() RNICD_REQUIRES(mutex_);
  std::vector<AdapterHealth> ReadLocked() const RNICD_REQUIRES(mutex_);

  provider::Provider& provider_;
  Os& os_;
  const Clock& clock_;
  const ProberOptions options_;

  mutable Mutex mutex_;
  // Signalled when a probe began or ended, every adapter's first result was reported, or the prober stops.
  mutable ConditionVariable moved_;
  // Wakes the threads that sleep between two probes.
  ConditionVariable stop_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  bool rescan_ RNICD_GUARDED_BY(mutex_) = false;
  // True when on_change has been called for every adapter.
  bool settled_ RNICD_GUARDED_BY(mutex_) = false;
  uint32_t probing_ RNICD_GUARDED_BY(mutex_) = 0;
  // A list, because threads keep references to its elements.
  std::list<Card> cards_ RNICD_GUARDED_BY(mutex_);
  std::thread evaluator_;
};

}  // namespace rnicd::health
