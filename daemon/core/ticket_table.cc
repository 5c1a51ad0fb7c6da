#include "daemon/core/ticket_table.h"

#include <cstring>
#include <utility>

#include "base/status.h"

namespace rnicd::core {

FdTicket TicketTable::Issue(Entry entry) {
  const uint64_t bits[2] = {random_.Next(), random_.Next()};
  FdTicket ticket;
  static_assert(sizeof(bits) == sizeof(ticket));
  std::memcpy(ticket.data(), bits, sizeof(bits));
  entry.expiry = clock_.Now() + lifetime_;
  MutexLock lock(mutex_);
  DropExpired();
  tickets_.insert_or_assign(ticket, std::move(entry));
  return ticket;
}

absl::StatusOr<TicketTable::Entry> TicketTable::Redeem(const FdTicket& ticket, const ProcessKey& process) {
  MutexLock lock(mutex_);
  DropExpired();
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end() || found->second.process != process) {
    return MakeError(ErrorReason::TICKET_UNKNOWN, "fd_ticket");
  }
  Entry entry = std::move(found->second);
  tickets_.erase(found);
  return entry;
}

void TicketTable::RevokeFor(SessionId session) {
  MutexLock lock(mutex_);
  std::erase_if(tickets_, [session](const auto& ticket) { return ticket.second.session_id == session; });
}

uint64_t TicketTable::size() const {
  MutexLock lock(mutex_);
  DropExpired();
  return tickets_.size();
}

void TicketTable::DropExpired() const {
  const Instant now = clock_.Now();
  std::erase_if(tickets_, [now](const auto& ticket) { return ticket.second.expiry <= now; });
}

}  // namespace rnicd::core
