#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace rnicd::core {

class Ring;

// Counts of rings since the start of the daemon.
struct RingCounts {
  uint64_t entries = 0;
  // Work requests, in the chains of entries.
  uint64_t requests = 0;
  // Rings that slept and were woken by their clients.
  uint64_t doorbells = 0;
  // Entries that were refused, at once or after they pended.
  uint64_t refused = 0;
  // Rings that their clients kept awake, or woke, without an entry.
  uint64_t empty_wakeups = 0;
  // Rings that had to wait because their sessions were above a rate.
  uint64_t pauses = 0;
  // Rings that ended because their indices were impossible.
  uint64_t broken = 0;
  // Time spent polling for entries that had not arrived yet.
  std::chrono::nanoseconds spinning{0};
};

// Serves rings: takes what clients submit and executes it in the ring's session.
// Threads: safe.
class RingHost {
 public:
  virtual ~RingHost() = default;
  // Begins to serve a ring.
  virtual void Attach(std::shared_ptr<Ring> ring) = 0;
  // Stops serving a ring. `done` is called once, on any thread, when the host has released the ring; nothing is taken
  // from it afterwards.
  virtual void Detach(const std::shared_ptr<Ring>& ring, std::function<void()> done) = 0;
  virtual RingCounts Counts() const = 0;
};

}  // namespace rnicd::core
