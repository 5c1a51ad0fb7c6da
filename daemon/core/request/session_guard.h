#pragma once

#include <memory>
#include <utility>

#include "absl/base/attributes.h"

namespace rnicd::core {

class Lease;
class SessionAdapters;
class SessionConnectors;
class SessionDomains;
class SessionEndpoints;
class SessionListeners;
class SessionMappings;
class SessionMemory;
class SessionPairs;
class SessionQueues;
class SessionRegions;
class SessionRequests;
class SessionRings;
class SessionWindows;

// A request in progress: the session is not torn down while a guard exists. It is the only way to the objects of a
// session, so that nothing can be called on them without it.
// Lifetime: what it gives access to may be used as long as the guard exists.
class SessionGuard {
 public:
  SessionGuard(SessionGuard&& other) noexcept : lease_(std::move(other.lease_)) {}
  SessionGuard& operator=(SessionGuard&&) = delete;
  ~SessionGuard();

  SessionAdapters& adapters() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionDomains& domains() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionMemory& memory() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionRegions& regions() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionMappings& mappings() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionQueues& queues() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionPairs& pairs() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionRequests& requests() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionRings& rings() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionListeners& listeners() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionEndpoints& endpoints() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionConnectors& connectors() const ABSL_ATTRIBUTE_LIFETIME_BOUND;
  SessionWindows& windows() const ABSL_ATTRIBUTE_LIFETIME_BOUND;

 private:
  friend class Lease;
  explicit SessionGuard(std::shared_ptr<Lease> lease) : lease_(std::move(lease)) {}

  std::shared_ptr<Lease> lease_;
};

}  // namespace rnicd::core
