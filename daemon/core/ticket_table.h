#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/strong_id.h"
#include "daemon/core/caller.h"

namespace rnicd::core {

class Session;

// 128 unpredictable bits.
using FdTicket = std::array<uint8_t, 16>;

// The direction a descriptor travels in.
enum class FdDirection : uint8_t { kToDaemon, kToClient };

// One-time permissions to move one descriptor over the fd socket, each bound to the process it was issued to.
// Threads: safe.
class TicketTable {
 public:
  struct Entry {
    std::weak_ptr<Session> session;
    SessionId session_id;
    MemoryObjectId memory;
    FdDirection direction = FdDirection::kToClient;
    ProcessKey process;
    Instant expiry;
  };

  // Both outlive the table.
  TicketTable(RandomSource& random, const Clock& clock, std::chrono::milliseconds lifetime)
      : random_(random), clock_(clock), lifetime_(lifetime) {}

  // `entry.expiry` is set here.
  FdTicket Issue(Entry entry);
  // Removes the ticket and returns its entry. A ticket presented by another process stays valid.
  // Errors: TICKET_UNKNOWN.
  absl::StatusOr<Entry> Redeem(const FdTicket& ticket, const ProcessKey& process);
  void RevokeFor(SessionId session);
  std::chrono::milliseconds lifetime() const { return lifetime_; }
  // Number of tickets issued that are neither redeemed nor expired.
  uint64_t size() const;

 private:
  void DropExpired() const RNICD_REQUIRES(mutex_);

  RandomSource& random_;
  const Clock& clock_;
  const std::chrono::milliseconds lifetime_;
  mutable Mutex mutex_;
  // Small: a ticket lives for seconds, and each is backed by a charged memory object.
  mutable std::map<FdTicket, Entry> tickets_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
