#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rnicd/v1/admin_service.pb.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::soak {

// Measurements of the daemon while it has no clients.
struct Figures {
  // Minutes since the baseline.
  double minute = 0;
  // Sessions opened so far by all clients.
  uint64_t sessions_opened = 0;
  uint64_t open_fds = 0;
  uint64_t threads = 0;
  uint64_t resident_kib = 0;
  // Mappings of memory files: the daemon's own, as of its probes.
  uint64_t mapped_files = 0;
  // Number of memory mappings of the process.
  uint64_t maps = 0;
};

// Measures the daemon between spells of load, and reports what it failed to release.
//
// Everything that clients own must be back to zero, and descriptors back to the baseline. Three figures belong to gRPC
// and the allocator, and grow to a plateau with the peak of concurrent work:
//   threads   gRPC keeps one or two threads per core after load;
//   maps      each such thread has a stack with a guard, and an arena; freed memory splits mappings;
//   resident  bounded above the baseline, and its slope over the later half of the checkpoints is bounded too.
class LeakCheck {
 public:
  explicit LeakCheck(test::DaemonProcess& daemon) : daemon_(daemon) {}

  // Waits, with a timeout, until the daemon holds nothing; the first call sets the baseline. Returns the errors, one
  // per line.
  std::vector<std::string> Check(uint64_t sessions_opened);
  // Figures for a progress line; empty if the daemon does not respond.
  std::string Summary() const;
  const std::vector<Figures>& figures() const { return figures_; }
  // KiB per minute over the later half of the checkpoints; 0 if there are too few or they are too close together.
  double SlopeKiB() const;
  // Bytes per opened session over the same checkpoints.
  double BytesPerSession() const;

 private:
  std::string WhatIsHeld(v1::GetStatusResponse& status) const;

  test::DaemonProcess& daemon_;
  std::chrono::steady_clock::time_point began_;
  std::vector<Figures> figures_;
};

}  // namespace rnicd::soak
