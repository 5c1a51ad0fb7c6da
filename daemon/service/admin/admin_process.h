#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/doors.h"
#include "daemon/health/probe_record.h"

namespace rnicd::service {

// The daemon process, as operators inspect and control it, beyond the state of core. Implemented by app::App.
// Lifetime: outlives every service.
// Threads:  safe.
class ProcessControl {
 public:
  virtual ~ProcessControl() = default;

  virtual std::string version() const = 0;
  // 1 for a daemon that took over from nobody.
  virtual uint32_t generation() const = 0;
  // host:port of the metrics page; empty if there is none.
  virtual std::string metrics_address() const = 0;
  virtual uint64_t connections() const = 0;
  // Number of registrations in the cards, without those of the daemon's own probes.
  virtual uint64_t device_regions() const = 0;
  // Result of the latest probe of each card.
  virtual std::vector<health::AdapterHealth> adapters() const = 0;
  // Path of the policy file; empty when each uid is a tenant of its own.
  virtual std::string policy_file() const = 0;
  // Null where this system has no doors.
  virtual core::Doors* doors() const = 0;

  // A grant was revoked, or, with a UID, bound to a pod: older generations have sessions that it ends, too.
  virtual void OnGrantNarrowed(GrantId grant, const std::string& pod_uid) = 0;

  // Returns the previous level. Errors: FIELD_OUT_OF_RANGE for an unknown level.
  virtual absl::StatusOr<std::string> SetLogLevel(std::string_view level) = 0;
  // Errors: POLICY_REFUSED with the line in the message; the policy in force stays.
  virtual absl::Status ReloadPolicy() = 0;
  // Sets whether core refuses new sessions and objects. A daemon that is stopping always drains. Returns whether it
  // drains from now on.
  virtual bool SetDraining(bool draining) = 0;
};

}  // namespace rnicd::service
