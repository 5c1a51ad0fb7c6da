#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "base/error_reason.h"
#include "base/ndk/operation_type.h"
#include "base/ntstatus.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/workload.h"

namespace rnicd::core {

// Why a session ended.
enum class EndCause : uint8_t {
  kClosed,
  kProcessExited,
  kConnectionLost,
  kEvicted,
  kDaemonStopping,
  kGrantRevoked,
  kGrantExpired,
};
inline constexpr EndCause kAllEndCauses[] = {
    EndCause::kClosed,         EndCause::kProcessExited, EndCause::kConnectionLost, EndCause::kEvicted,
    EndCause::kDaemonStopping, EndCause::kGrantRevoked,  EndCause::kGrantExpired};

// Reasons for refusing a connection.
inline constexpr std::string_view kRefusedLimit = "connection_limit";
inline constexpr std::string_view kRefusedUidLimit = "connection_limit_uid";
inline constexpr std::string_view kRefusedNoDescriptors = "out_of_descriptors";
inline constexpr std::string_view kRefusedIdentity = "no_identity";
inline constexpr std::string_view kRefusedRole = "not_an_operator";
inline constexpr std::string_view kRefusedSilent = "silent";
inline constexpr std::string_view kRefusedRate = "connection_rate";
// A repeat soon after a refusal, refused without another check. Counted, but no decision.
inline constexpr std::string_view kRefusedBackoff = "backoff";
inline constexpr std::string_view kRefusals[] = {kRefusedLimit,    kRefusedUidLimit, kRefusedNoDescriptors,
                                                 kRefusedIdentity, kRefusedRole,     kRefusedSilent,
                                                 kRefusedRate,     kRefusedBackoff};

// The note of a decision to accept nobody at a socket for a moment.
inline constexpr std::string_view kStorm = "storm";

// "process_exited": for events, metrics and logs.
std::string_view EndCauseName(EndCause cause);

// Objects a session still held when it ended.
struct Reclaimed {
  uint64_t regions = 0;
  uint64_t pinned_bytes = 0;
  uint64_t memory_bytes = 0;
  // Regions the device did not deregister and memory that was still in use: a bug or a failing card.
  uint64_t failures = 0;
};

// A call through the gate has ended.
struct RpcEnded {
  // Name of the row: "MemoryService.CreateMr".
  std::string_view method;
  absl::StatusCode code = absl::StatusCode::kOk;
  // Empty for a stream, whose duration depends on its client.
  std::optional<std::chrono::nanoseconds> duration;
};

// A connection was refused when it was accepted.
struct ConnectionRefused {
  // One of kRefusals.
  std::string_view reason;
};

struct SessionOpened {
  SessionId id;
  const Caller& caller;
};

struct SessionEnded {
  SessionId id;
  const Caller& caller;
  EndCause cause = EndCause::kClosed;
  Reclaimed reclaimed;
};

// One registration, from the request to its outcome.
struct RegistrationEnded {
  // OK, or the reason for the failure.
  absl::Status status;
  uint64_t bytes = 0;
  // False for a request that was refused before it reached the device; its duration is meaningless.
  bool reached_device = false;
  // Time from admission to outcome, including the time in a worker's queue.
  std::chrono::nanoseconds duration{0};
};

// The device deregistered a region, or failed to.
struct DeregistrationEnded {
  absl::Status status;
};

// A fast registration was refused when it was posted.
struct FastRegisterRefused {};

// The card completed a request of a queue pair. On the path of every work request.
struct WorkRequestCompleted {
  OperationType operation = OperationType::kSend;
  NtStatus status = NtStatus::kSuccess;
};

struct TokensIssued {
  uint64_t local = 0;
  uint64_t remote = 0;
};

// Cause of tokens that died with what their owner still had on a removed card.
inline constexpr std::string_view kRemovalCause = "adapter_removed";

struct TokensRevoked {
  uint64_t pairs = 0;
  // "deregister", "close", kRemovalCause or an EndCauseName.
  std::string_view cause;
};

// A permission granted, refused or revoked: one line of the audit log. Never contains a token, a ticket or a secret.
struct Decision {
  // Name of the action: "MemoryService.RegisterMr" for a call; otherwise "connection", "session.end", "fd",
  // "adapter.removed", "grant.expire", "policy.reload"; "late.register", "late.deregister", "late.initialize" when a
  // request fails after its call returned STATUS_PENDING.
  std::string_view what;
  // Process that made the request; null when the daemon itself decided.
  const Caller* caller = nullptr;
  // Name of the tenant; empty when there is none yet.
  std::string_view tenant;
  // Workload of the tenant at that moment; may be null.
  std::shared_ptr<const Workload> workload;
  // ID of the session; 0 when there is none.
  SessionId session;
  // Object concerned, as "mr_id=17 pd_id=4"; may be empty.
  std::string object;
  // OK, or the reason for the refusal.
  absl::Status status;
  // Detail for people: one of kRefusals, kStorm, an EndCauseName, "refused=3 of=64"; may be empty.
  std::string_view note;
};

// One of the events above, as an Observer receives it. A pointer, so that the path of every work request copies and
// destroys nothing.
// Lifetime: the event outlives it.
class Observation {
  // A new event is a further line here. Every observer that visits then fails to compile until it handles the event.
  using AnyEvent =
      std::variant<const RpcEnded*, const ConnectionRefused*, const SessionOpened*, const SessionEnded*,
                   const RegistrationEnded*, const DeregistrationEnded*, const FastRegisterRefused*,
                   const WorkRequestCompleted*, const TokensIssued*, const TokensRevoked*, const Decision*>;

 public:
  template <typename Event>
  explicit Observation(const Event& event) : event_(std::in_place_type<const Event*>, &event) {}

  // Calls `visitor` with the event. For observers that must miss none: the visitor must accept all of them, and names
  // those that it ignores, with no overload that accepts any type.
  template <typename Visitor>
  void Visit(const Visitor& visitor) const {
    std::visit([&](const auto* event) { visitor(*event); }, event_);
  }

  // The event if it is of this type, otherwise null. For observers of a few events.
  template <typename Event>
  const Event* As() const {
    const auto* const event = std::get_if<const Event*>(&event_);
    return event == nullptr ? nullptr : *event;
  }

 private:
  AnyEvent event_;
};

// Receives the events of core, gate and transport: metrics and logs implement it, core depends on neither.
// Threads: called from any thread, never under a lock of core. Must be quick and must not call core.
class Observer {
 public:
  virtual ~Observer() = default;

  // Reports an event of observation.h.
  template <typename Event>
  void Report(const Event& event) {
    Observe(Observation(event));
  }

  virtual void Observe(const Observation& observation) = 0;
  // False when Observe ignores every Decision that is a success, which then need not be described to it.
  virtual bool HeedsSuccesses() const { return true; }
};

}  // namespace rnicd::core
