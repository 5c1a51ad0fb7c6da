#pragma once

#include <memory>
#include <utility>

#include "absl/base/attributes.h"

namespace rnicd::core {

class Session;
class SessionAdapters;
class SessionDomains;
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
  SessionGuard(SessionGuard&& other) noexcept : session_(std::move(other.session_)) {}
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
  SessionWindows& windows() const ABSL_ATTRIBUTE_LIFETIME_BOUND;

 private:
  friend class Session;
  explicit SessionGuard(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  std::shared_ptr<Session> session_;
};

}  // namespace rnicd::core
