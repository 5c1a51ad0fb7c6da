#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/app/config/config.h"
#include "daemon/core/tenant/doors.h"
#include "daemon/door/services.h"
#include "daemon/health/serving_check.h"

namespace rnicd::app {

// The front door of this system: sockets on Linux, pipes and TCP on Windows.
// Lifetime: call Stop before destroying.
// Threads:  one calls; `connections` from any.
class SystemDoor {
 public:
  virtual ~SystemDoor() = default;

  // Serves. Errors: the name or address that cannot be served, and why.
  virtual absl::Status Start() = 0;
  // Accepts nothing from now on, under no name; open connections continue.
  virtual void StopAccepting() = 0;
  // Ends every connection.
  virtual void Stop() = 0;
  virtual uint64_t connections() const = 0;
  // The doors of grants, to be asked once it was started; null where this system has none.
  virtual core::Doors* doors() = 0;
  // Its threads, for the serving check. To be asked from Start until StopAccepting.
  virtual std::vector<health::ServingPart> Parts() = 0;
};

// The names under which clients find the daemon, claimed for this process as long as this lives. On Windows they are
// claimed when the door starts, and belong to the pipes.
// Lifetime: outlives its door.
class DoorNames {
 public:
  virtual ~DoorNames() = default;
  // For the log: what workloads and operators look for.
  virtual std::string workloads() const = 0;
  virtual std::string operators() const = 0;
  // Once.
  virtual std::unique_ptr<SystemDoor> MakeDoor(const Config& config, const door::Services& services) = 0;
};

// Errors: kFailedPrecondition, kUnavailable, naming the path, when another daemon has the names.
absl::StatusOr<std::unique_ptr<DoorNames>> ClaimDoorNames(const Config& config);

}  // namespace rnicd::app
