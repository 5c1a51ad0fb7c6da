#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/health/probe_record.h"

namespace rnicd::service {

// The process as operators see and steer it, beyond what core knows. The app is one.
// Lifetime: outlives every service. Threads: safe.
class ProcessControl {
 public:
  virtual ~ProcessControl() = default;

  virtual std::string version() const = 0;
  // host:port, or empty.
  virtual std::string metrics_address() const = 0;
  virtual uint64_t connections() const = 0;
  // Registrations that are alive in the cards, without those by which the daemon itself tries them.
  virtual uint64_t device_regions() const = 0;
  // What trying the cards said last.
  virtual std::vector<health::AdapterHealth> adapters() const = 0;
  // Its path; empty when each uid is a tenant of its own.
  virtual std::string policy_file() const = 0;

  // Answers what it was. Errors: FIELD_OUT_OF_RANGE for a word that is no level.
  virtual absl::StatusOr<std::string> SetLogLevel(std::string_view level) = 0;
  // Errors: POLICY_REFUSED with the line in the message; the policy in force stays.
  virtual absl::Status ReloadPolicy() = 0;
  // Says whether core takes things on. A daemon that is stopping takes nothing on, whatever is asked. Answers whether
  // it drains from now on.
  virtual bool SetDraining(bool draining) = 0;
};

}  // namespace rnicd::service
