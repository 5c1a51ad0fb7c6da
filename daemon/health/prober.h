#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/os.h"
#include "daemon/health/adapter_probe.h"
#include "daemon/health/probe_record.h"
#include "provider/api/device.h"

namespace rnicd::health {

// Whether one adapter is enough: a node that lost one of two cards still serves the sessions on the other.
bool AnyHealthy(const std::vector<AdapterHealth>& adapters);

struct ProberOptions {
  // From the end of a probe to the next.
  std::chrono::milliseconds interval{1000};
  // A probe that takes so long makes its adapter unhealthy while it is still under way. Interval and patience together
  // are how late a card that goes silent is noticed.
  std::chrono::milliseconds patience{3000};
  // Called for the first verdict on each adapter and for each change, in their order, one at a time; `ready` is what
  // AnyHealthy said of all adapters then. It may ask the prober, and must not wait for it.
  std::function<void(const AdapterHealth& adapter, bool ready)> on_change;
};

// Probes every adapter of a provider again and again. Each has a thread of its own, so that a card that hangs does not
// hide the others; one more thread judges, also those that hang.
// Lifetime: provider and os outlive it. No call into a card can be given up, so the destructor waits for the probes
//           that are under way; who must not wait asks Stop first.
// Threads:  safe.
class Prober {
 public:
  // Returns when there is a verdict on every adapter, which takes no longer than the patience.
  static std::unique_ptr<Prober> Start(provider::Provider& provider, Os& os, ProberOptions options);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // In the order of the provider's list.
  std::vector<AdapterHealth> Read() const;
  bool ready() const { return AnyHealthy(Read()); }

  // The provider's live regions without those of the probes. Normally exact, because it waits for the moment between
  // two probes. Where cards are so slow that the moment does not come soon, it counts what the cards have answered, and
  // is one too high or too low per card that is about to answer.
  uint64_t RegionsOfOthers() const;

  // Begins no more probes and waits for those under way; false when one is still under way at the deadline.
  bool Stop(Instant deadline);

 private:
  struct Card {
    Card(provider::Provider& provider, Os& os, const std::string& adapter, std::chrono::nanoseconds patience)
        : probe(provider, os, adapter), record(adapter, patience) {}

    AdapterProbe probe;
    // Under the prober's lock.
    ProbeRecord record;
    bool reported = false;
    bool reported_healthy = false;
    std::thread thread;
  };

  Prober(provider::Provider& provider, Os& os, ProberOptions options);

  // Of one card's thread, until Stop.
  void ProbeAgainAndAgain(Card& card);
  void ProbeOnce(Card& card);
  bool SleepUntil(Instant due);
  // Of the judge's thread, until Stop.
  void JudgeAgainAndAgain();
  std::vector<AdapterHealth> WaitForChanges(bool& ready);
  std::vector<AdapterHealth> TakeChanges(Instant now) RNICD_REQUIRES(mutex_);
  void WaitForNews() RNICD_REQUIRES(mutex_);
  std::vector<AdapterHealth> ReadLocked() const RNICD_REQUIRES(mutex_);

  provider::Provider& provider_;
  const ProberOptions options_;

  mutable Mutex mutex_;
  // A probe began or ended, every adapter's first verdict was reported, or there is an end.
  mutable ConditionVariable moved_;
  // For the threads that sleep between two probes.
  ConditionVariable stop_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  // on_change has been called for every adapter.
  bool settled_ RNICD_GUARDED_BY(mutex_) = false;
  uint32_t probing_ RNICD_GUARDED_BY(mutex_) = 0;
  // A list, because threads keep references.
  std::list<Card> cards_ RNICD_GUARDED_BY(mutex_);
  std::thread judge_;
};

}  // namespace rnicd::health
