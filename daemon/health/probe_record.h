#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace rnicd::health {

// The health of one adapter according to its probes.
struct AdapterHealth {
  std::string adapter;
  // False also before the first result.
  bool healthy = false;
  // OK, or why the adapter is not healthy: the error of the last probe, or DEVICE_FAILED for one that timed out.
  absl::Status status;
  // Time of the last change between healthy and unhealthy.
  Instant since;
  // Duration of the last probe that has ended; 0 before.
  std::chrono::nanoseconds last_duration{0};
  // A probe that times out counts as failed at once, and not again when it ends after all.
  uint64_t probes_ok = 0;
  uint64_t probes_failed = 0;
};

// Evaluates the probes of one adapter. A probe that succeeds after its timeout is a failure: a card that takes so long
// is unusable.
// Threads: one at a time; times are the caller's and never decrease.
class ProbeRecord {
 public:
  ProbeRecord(std::string adapter, std::chrono::nanoseconds timeout);

  void Began(Instant now);
  void Ended(Instant now, const absl::Status& status);
  // Fails the running probe when it has timed out.
  void CheckTimeout(Instant now);

  // Time at which the running probe will time out; empty when none is running, or it has timed out already.
  std::optional<Instant> late_at() const;
  bool evaluated() const { return evaluated_; }
  const AdapterHealth& health() const { return health_; }

 private:
  void SetResult(Instant now, const absl::Status& status);

  const std::chrono::nanoseconds timeout_;
  std::optional<Instant> began_;
  // True when the running probe has timed out.
  bool late_ = false;
  bool evaluated_ = false;
  AdapterHealth health_;
};

}  // namespace rnicd::health
