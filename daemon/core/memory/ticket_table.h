#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::core {

class Lease;

// 128 unpredictable bits.
using FdTicket = std::array<uint8_t, 16>;

// The direction a descriptor travels in.
enum class FdDirection : uint8_t { kToDaemon, kToClient };

// A descriptor of a ring, or of a mapped completion queue: the memory that client and daemon share, the eventfd with
// which the client wakes the daemon, the pipe in which the daemon announces something to the client.
enum class SharedDescriptor : uint8_t { kMemory, kDoorbell, kPipe };
struct RingDescriptor {
  RingId ring;
  SharedDescriptor which = SharedDescriptor::kMemory;
};
struct QueueDescriptor {
  CompletionQueueId queue;
  SharedDescriptor which = SharedDescriptor::kMemory;
};

// One-time permissions to move one descriptor over the fd socket, each bound to the process it was issued to. A ticket
// belongs to an object, which holds it as an OwnedTicket: the charges of the objects bound the table.
// Threads: safe.
class TicketTable {
 public:
  struct Entry {
    std::weak_ptr<Lease> session;
    std::variant<MemoryObjectId, RingDescriptor, QueueDescriptor> object;
    FdDirection direction = FdDirection::kToClient;
    ProcessKey process;
  };

  // Both outlive the table.
  TicketTable(RandomSource& random, const Clock& clock, std::chrono::milliseconds lifetime)
      : random_(random), clock_(clock), lifetime_(lifetime) {}

  FdTicket Issue(Entry entry);
  // Returns the entry of a ticket, which stays valid. Errors: TICKET_UNKNOWN, also for a ticket of another process.
  absl::StatusOr<Entry> Find(const FdTicket& ticket, const ProcessKey& process) const;
  // Removes the ticket. Of concurrent calls one succeeds. Errors: as Find.
  absl::Status Redeem(const FdTicket& ticket, const ProcessKey& process);
  // Removes the ticket, if it is still valid.
  void Revoke(const FdTicket& ticket);
  std::chrono::milliseconds lifetime() const { return lifetime_; }
  // Number of tickets issued that are neither redeemed, revoked nor expired.
  uint64_t size() const;

 private:
  struct Issued {
    FdTicket ticket{};
    Entry entry;
    Instant expiry;
  };
  // All tickets have the same lifetime, so the order of issue is the order of expiry.
  using Queue = std::list<Issued>;

  void DropExpired() const RNICD_REQUIRES(mutex_);
  // The end of the queue if the ticket is unknown.
  Queue::iterator Locate(const FdTicket& ticket, const ProcessKey& process) const RNICD_REQUIRES(mutex_);
  void Erase(Queue::iterator issued) const RNICD_REQUIRES(mutex_);

  RandomSource& random_;
  const Clock& clock_;
  const std::chrono::milliseconds lifetime_;
  mutable Mutex mutex_;
  mutable Queue queue_ RNICD_GUARDED_BY(mutex_);
  mutable std::map<FdTicket, Queue::iterator> tickets_ RNICD_GUARDED_BY(mutex_);
};

// A ticket that is revoked when this is destroyed. Empty when default made or moved from.
// Lifetime: outlived by the table.
class OwnedTicket {
 public:
  OwnedTicket() = default;
  OwnedTicket(TicketTable& table, const FdTicket& ticket) : table_(&table), ticket_(ticket) {}
  OwnedTicket(OwnedTicket&& other) noexcept : table_(std::exchange(other.table_, nullptr)), ticket_(other.ticket_) {}
  OwnedTicket& operator=(OwnedTicket&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  ~OwnedTicket() {
    if (table_ != nullptr) {
      table_->Revoke(ticket_);
    }
  }

 private:
  TicketTable* table_ = nullptr;
  FdTicket ticket_{};
};

}  // namespace rnicd::core
