#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/error_reason.h"
#include "base/ntstatus.h"
#include "base/operation_type.h"
#include "base/strong_id.h"
#include "daemon/core/caller.h"
#include "daemon/core/workload.h"

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
// Refused a moment ago, and not looked at again. Counted, but no decision.
inline constexpr std::string_view kRefusedBackoff = "backoff";
inline constexpr std::string_view kRefusals[] = {kRefusedLimit,    kRefusedUidLimit, kRefusedNoDescriptors,
                                                 kRefusedIdentity, kRefusedRole,     kRefusedSilent,
                                                 kRefusedRate,     kRefusedBackoff};

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

// One registration, from the request to its outcome.
struct RegistrationReport {
  // OK, or the reason for the failure.
  absl::Status status;
  uint64_t bytes = 0;
  // False for a request that was refused before it reached the device; its duration is meaningless.
  bool reached_device = false;
  // Time from admission to outcome, including the time in a worker's queue.
  std::chrono::nanoseconds duration{0};
};

// A permission granted, refused or revoked: one line of the audit log. Never contains a token, a ticket or a secret.
struct Decision {
  // Name of the action: "MemoryService.RegisterMr" for a call; otherwise "connection", "session.end", "fd",
  // "grant.expire", "policy.reload"; "late.register", "late.deregister", "late.initialize" when a request fails after
  // its call returned STATUS_PENDING.
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
  // Detail for people: one of kRefusals, an EndCauseName, "refused=3 of=64"; may be empty.
  std::string_view note;
};

// Receives core's reports: metrics and logs implement it, core depends on neither.
// Threads: called from any thread, never under a lock of core. Must be quick and must not call core.
class Observer {
 public:
  virtual ~Observer() = default;
  // A call through the gate has ended. `method` is a row's name, "MemoryService.CreateMr". A stream has no duration:
  // its client decides how long it lives.
  virtual void OnRpc(std::string_view /*method*/, absl::StatusCode, std::optional<std::chrono::nanoseconds>) {}
  // A connection was refused when it was accepted; `reason` is one of kRefusals.
  virtual void OnConnectionRefused(std::string_view /*reason*/) {}
  virtual void OnSessionOpened(SessionId, const Caller&) {}
  virtual void OnSessionEnded(SessionId, const Caller&, EndCause, const Reclaimed&) {}
  virtual void OnRegistered(const RegistrationReport&) {}
  virtual void OnDeregistered(const absl::Status&) {}
  // A fast registration was refused when it was posted.
  virtual void OnFastRegisterRefused() {}
  // The card completed a request of a queue pair. On the path of every work request.
  virtual void OnCompletion(OperationType, NtStatus) {}
  virtual void OnTokensIssued(uint64_t /*local*/, uint64_t /*remote*/) {}
  // Pairs of tokens were revoked; `cause` is "deregister", "close" or an EndCauseName.
  virtual void OnTokensRevoked(uint64_t /*pairs*/, std::string_view /*cause*/) {}
  virtual void OnDecision(const Decision&) {}
  // False when OnDecision ignores every success, which then need not be described to it.
  virtual bool HeedsSuccesses() const { return true; }
};

}  // namespace rnicd::core
