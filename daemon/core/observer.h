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

// Why a connection was turned away.
inline constexpr std::string_view kRefusedLimit = "connection_limit";
inline constexpr std::string_view kRefusedUidLimit = "connection_limit_uid";
inline constexpr std::string_view kRefusedNoDescriptors = "out_of_descriptors";
inline constexpr std::string_view kRefusedIdentity = "no_identity";
inline constexpr std::string_view kRefusedRole = "not_an_operator";
inline constexpr std::string_view kRefusedSilent = "silent";
inline constexpr std::string_view kRefusals[] = {kRefusedLimit,    kRefusedUidLimit, kRefusedNoDescriptors,
                                                 kRefusedIdentity, kRefusedRole,     kRefusedSilent};

// "process_exited": for events, metrics and logs.
std::string_view EndCauseName(EndCause cause);

// What a session still held when it ended.
struct Reclaimed {
  uint64_t regions = 0;
  uint64_t pinned_bytes = 0;
  uint64_t memory_bytes = 0;
  // Regions the device did not deregister and memory that was still in use: a bug or a dying card.
  uint64_t failures = 0;
};

// One registration, from the request to its outcome.
struct RegistrationReport {
  // Ok, or why not.
  absl::Status status;
  uint64_t bytes = 0;
  // False for a request that was refused before the device was asked; it has no duration worth the name.
  bool reached_device = false;
  // From admission to outcome, time in a worker's queue included.
  std::chrono::nanoseconds duration{0};
};

// Something that was allowed, refused or taken away: a line of the audit log. Never a token, a ticket or a secret.
struct Decision {
  // "MemoryService.RegisterMr" for a call; "connection", "session.end", "fd", "grant.expire", "policy.reload"
  // otherwise; "late.register", "late.deregister", "late.initialize" when a request fails that its call left pending.
  std::string_view what;
  // Null when the daemon itself decided.
  const Caller* caller = nullptr;
  // Empty when there is none yet.
  std::string_view tenant;
  // Of the tenant, at that moment; may be null.
  std::shared_ptr<const Workload> workload;
  // 0 when there is none.
  SessionId session;
  // What it was about, as "mr_id=17 pd_id=4"; may be empty.
  std::string object;
  // Ok, or why not.
  absl::Status status;
  // More for people: one of kRefusals, an EndCauseName, "refused=3 of=64"; may be empty.
  std::string_view note;
};

// Where core says what happened: metrics and logs listen, core knows neither.
// Threads: called from any thread, never under a lock of core. Must be quick and must not call core.
class Observer {
 public:
  virtual ~Observer() = default;
  // A call through the gate, at its end. `method` is a row's name, "MemoryService.CreateMr". A stream has no duration:
  // it lives as long as its client likes.
  virtual void OnRpc(std::string_view /*method*/, absl::StatusCode, std::optional<std::chrono::nanoseconds>) {}
  // A connection that was turned away at the door; `reason` is one of kRefusals.
  virtual void OnConnectionRefused(std::string_view /*reason*/) {}
  virtual void OnSessionOpened(SessionId, const Caller&) {}
  virtual void OnSessionEnded(SessionId, const Caller&, EndCause, const Reclaimed&) {}
  virtual void OnRegistered(const RegistrationReport&) {}
  virtual void OnDeregistered(const absl::Status&) {}
  // A fast registration that was refused when it was posted.
  virtual void OnFastRegisterRefused() {}
  // What a card brought for a queue pair. On the path of every work request.
  virtual void OnCompletion(OperationType, NtStatus) {}
  virtual void OnTokensIssued(uint64_t /*local*/, uint64_t /*remote*/) {}
  // Pairs of tokens that died; `cause` is "deregister", "close" or an EndCauseName.
  virtual void OnTokensRevoked(uint64_t /*pairs*/, std::string_view /*cause*/) {}
  virtual void OnDecision(const Decision&) {}
};

}  // namespace rnicd::core
