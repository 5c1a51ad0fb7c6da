#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace rnicd::health {

// What the probes of one adapter say.
struct AdapterHealth {
  std::string adapter;
  // False as well before the first verdict.
  bool healthy = false;
  // Ok, or why the adapter is not healthy: what the last probe failed with, or DEVICE_FAILED for one that is late.
  absl::Status status;
  // Since when it has been as it is: healthy, or not.
  Instant since;
  // Of the last probe that has ended; 0 before.
  std::chrono::nanoseconds last_duration{0};
  // A probe that is late counts as failed at once, and not again when it ends after all.
  uint64_t probes_ok = 0;
  uint64_t probes_failed = 0;
};

// Makes verdicts of the probes of one adapter. A probe that succeeds too late is a failure: nobody can use a card that
// takes so long.
// Threads: one at a time; times are the caller's and never go back.
class ProbeRecord {
 public:
  ProbeRecord(std::string adapter, std::chrono::nanoseconds patience);

  void Began(Instant now);
  void Ended(Instant now, const absl::Status& status);
  // Condemns the probe that is under way when it is late.
  void LookAt(Instant now);

  // When the probe under way will be late; nothing when none is, or it is late already.
  std::optional<Instant> late_at() const;
  bool judged() const { return judged_; }
  const AdapterHealth& health() const { return health_; }

 private:
  void Judge(Instant now, const absl::Status& status);

  const std::chrono::nanoseconds patience_;
  std::optional<Instant> began_;
  // The probe under way was condemned.
  bool late_ = false;
  bool judged_ = false;
  AdapterHealth health_;
};

}  // namespace rnicd::health
