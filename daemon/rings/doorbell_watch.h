#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace rnicd::rings {

// The wait of a thread that serves rings: for the doorbells of its rings, and for Interrupt. A doorbell is reported
// once for each time that it rings, and never read.
// Lifetime: outlives no doorbell that it listens to.
// Threads: Interrupt from any, the rest from one.
class DoorbellWatch {
 public:
  // What Wait reports for a doorbell; the caller's own, never null.
  using Owner = void*;

  // Errors: kUnavailable with the system call.
  static absl::StatusOr<std::unique_ptr<DoorbellWatch>> Create();
  virtual ~DoorbellWatch() = default;

  // False when the system refuses.
  virtual bool Add(int doorbell, Owner owner) = 0;
  // A muted doorbell is not reported. One that is not muted any more is reported at once, as it may have rung.
  virtual bool Mute(int doorbell, Owner owner) = 0;
  virtual bool Unmute(int doorbell, Owner owner) = 0;
  virtual void Remove(int doorbell) = 0;

  // Waits for doorbells or Interrupt, with the timeout `longest`; without it, no timeout. Calls `heard` for some of the
  // doorbells that rang; the others are left to the next call. May return early.
  virtual void Wait(std::optional<std::chrono::milliseconds> longest, const std::function<void(Owner)>& heard) = 0;
  // Ends the present Wait, or the next.
  virtual void Interrupt() = 0;
};

}  // namespace rnicd::rings
