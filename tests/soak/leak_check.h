#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rnicd/v1/admin_service.pb.h"
#include "tests/support/daemon_process.h"

namespace rnicd::soak {

// What the daemon is made of while nobody uses it.
struct Figures {
  // Minutes since the baseline.
  double minute = 0;
  // Sessions that were opened until then, by all clients.
  uint64_t sessions_opened = 0;
  uint64_t open_fds = 0;
  uint64_t threads = 0;
  uint64_t resident_kib = 0;
  // Mappings of the process.
  uint64_t maps = 0;
};

// Takes the daemon's measure between the crowds, and says what is wrong with it.
//
// Everything that clients own must be back to nothing, and descriptors to the baseline. Three figures are gRPC's and
// the allocator's, and grow to a plateau with the most that was ever under way at once:
//   threads   gRPC keeps a thread or two for each core when it was busy;
//   maps      each such thread has a stack with a guard, and an arena; freed memory splits mappings;
//   resident  bounded above the baseline, and its slope over the later half of the checkpoints is bounded too.
class LeakCheck {
 public:
  explicit LeakCheck(test::DaemonProcess& daemon) : daemon_(daemon) {}

  // Waits, bounded, until the daemon holds nothing; the first call makes the baseline. What is wrong, line by line.
  std::vector<std::string> Check(uint64_t sessions_opened);
  // As a progress line shows it; empty when the daemon does not answer.
  std::string Summary() const;
  const std::vector<Figures>& figures() const { return figures_; }
  // KiB a minute over the later half of the checkpoints; 0 when they are too few or too close to say.
  double SlopeKiB() const;
  // Bytes for each session that was opened, over the same.
  double BytesPerSession() const;

 private:
  std::string WhatIsHeld(v1::GetStatusResponse& status) const;

  test::DaemonProcess& daemon_;
  std::chrono::steady_clock::time_point began_;
  std::vector<Figures> figures_;
};

}  // namespace rnicd::soak
