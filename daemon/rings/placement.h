#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "ring/processor.h"

namespace rnicd::rings {

// Where ring threads run. While a processor is free the system chooses well: it wakes a thread there, which then polls.
// Once clients are busy on all of them, a thread that wakes up on another client's processor makes that one wait, too:
// each thread then stays on the processors of its own clients.
// Threads: safe.
class Placement {
 public:
  explicit Placement(size_t threads, const ring::Processors& allowed = ring::AllowedProcessors())
      : allowed_(allowed), threads_(threads) {}

  // Where this thread, from 0, should run. `clients`: the processors of its clients that were busy lately.
  ring::Processors Choose(size_t thread, const ring::Processors& clients, Instant now);
  const ring::Processors& allowed() const { return allowed_; }

 private:
  struct Seen {
    ring::Processors clients;
    Instant at;
  };

  const ring::Processors allowed_;
  Mutex mutex_;
  std::vector<Seen> threads_ RNICD_GUARDED_BY(mutex_);
};

// A thread's part in it.
// Threads: one.
class ThreadPlace {
 public:
  // Which of the shared threads this is. `placement` outlives it.
  ThreadPlace(Placement& placement, size_t thread)
      : placement_(placement), thread_(thread), runs_on_(placement.allowed()) {}

  // A client that runs on the thread's processor has submitted: for some time it is likely to need that again, be it to
  // read what another client sends it.
  void ClientIsHere(Instant now) { client_here_ = now; }
  // Whether polling would keep such a client waiting.
  bool IsAClients(Instant now) const;

  // How long a client counts as busy, and how often a busy thread moves.
  static constexpr std::chrono::milliseconds kPeriod{10};
  bool MayMove(Instant now) const { return !moved_.has_value() || now - *moved_ >= kPeriod; }
  // Moves the calling thread. `clients`: as in Placement.
  void Move(const ring::Processors& clients, Instant now);

 private:
  Placement& placement_;
  const size_t thread_;
  ring::Processors runs_on_;
  std::optional<Instant> client_here_;
  std::optional<Instant> moved_;
};

}  // namespace rnicd::rings
