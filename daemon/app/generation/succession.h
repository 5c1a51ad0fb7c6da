#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/system/unique_socket.h"
#include "daemon/app/config/config.h"
#include "daemon/app/host/system_door.h"
#include "daemon/core/request/node.h"
#include "daemon/core/request/older_generation.h"
#include "daemon/core/session/session_registry.h"
#include "log/logger.h"

namespace rnicd::app {

// What the daemon does itself at a hand-over. Called on one thread of the succession.
struct SuccessionCallbacks {
  // A newer generation takes over: a copy of the socket of the pages, which are not served from then on; invalid if
  // there are none.
  std::function<UniqueSocket()> lend_pages;
  // This one takes over, and gets that socket and the address that it is for.
  std::function<void(UniqueSocket listener, const std::string& address)> on_pages;
  std::string page_address;
  // It is gone, before or after it served. The counters are what it counted itself.
  std::function<void(const std::string& its_counters)> on_taken_back;
  // It serves, and the last session here has ended, or the deadline is over.
  std::function<void()> on_over;
  // Own counters and those that were inherited, for the newer generation's page.
  std::function<std::string()> counters;
  std::function<std::string()> own_counters;
  // Those of the older one, as it last reported them. Also called before the front door opens.
  std::function<void(const std::string& text)> on_counters;
};

// The parts that take part. All outlive it.
struct SuccessionParts {
  core::Node& node;
  core::SessionRegistry& registry;
  const log::Logger& logger;
  std::string version;
  SuccessionCallbacks callbacks;
};

// The daemon among its generations: takes over from an older one at its start, by TakeNames and Commit; then lets a
// newer one take over. On Windows it does neither. Lifetime: outlives the front door; Stop before that is destroyed.
// Threads:  the state from any, the rest from one.
class Succession {
 public:
  virtual ~Succession() = default;

  // True where an older generation runs, from which this one takes its names.
  virtual bool takes_over() const = 0;
  // Claims the names, or takes them, with all that core inherits, from the older generation, which accepts nobody from
  // then on. They are this object's. Errors: as ClaimDoorNames; the older one refuses, and goes on as before.
  virtual absl::StatusOr<DoorNames*> TakeNames(const Config& config, const SuccessionParts& parts) = 0;
  // When it returns ok the older generation has retired. Errors: it goes on as before.
  virtual absl::Status Commit() = 0;
  // The door is open: a newer generation may come.
  virtual absl::Status Offer(SystemDoor& door) = 0;
  // From now on nobody takes over, and nothing is heard of older generations.
  virtual void Stop() = 0;
  // Tells older generations, as core::Retirement::Narrow.
  virtual void NarrowGrant(GrantId grant, const std::string& pod_uid) = 0;

  // 1 for a daemon that took over from nobody.
  virtual uint32_t generation() const = 0;
  // A newer generation has taken over.
  virtual bool retired() const = 0;
  // Those that still serve sessions.
  virtual std::vector<core::OlderGeneration> older() const = 0;
};

std::unique_ptr<Succession> MakeSuccession(const Config& config, const Clock& clock);

}  // namespace rnicd::app
