#include "daemon/core/memory/ticket_table.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

absl::Status UnknownTicket() { return MakeError(ErrorReason::TICKET_UNKNOWN, "fd_ticket"); }

}  // namespace

FdTicket TicketTable::Issue(Entry entry) {
  const uint64_t bits[2] = {random_.Next(), random_.Next()};
  FdTicket ticket;
  static_assert(sizeof(bits) == sizeof(ticket));
  std::memcpy(ticket.data(), bits, sizeof(bits));
  MutexLock lock(mutex_);
  DropExpired();
  queue_.push_back({.ticket = ticket, .entry = std::move(entry), .expiry = clock_.Now() + lifetime_});
  tickets_.insert_or_assign(ticket, std::prev(queue_.end()));
  return ticket;
}

absl::StatusOr<TicketTable::Entry> TicketTable::Find(const FdTicket& ticket, const ProcessKey& process) const {
  MutexLock lock(mutex_);
  const auto issued = Locate(ticket, process);
  return issued != queue_.end() ? absl::StatusOr<Entry>(issued->entry) : UnknownTicket();
}

absl::Status TicketTable::Redeem(const FdTicket& ticket, const ProcessKey& process) {
  MutexLock lock(mutex_);
  const auto issued = Locate(ticket, process);
  if (issued == queue_.end()) {
    return UnknownTicket();
  }
  Erase(issued);
  return absl::OkStatus();
}

void TicketTable::Revoke(const FdTicket& ticket) {
  MutexLock lock(mutex_);
  if (const auto found = tickets_.find(ticket); found != tickets_.end()) {
    Erase(found->second);
  }
}

uint64_t TicketTable::size() const {
  MutexLock lock(mutex_);
  DropExpired();
  return tickets_.size();
}

TicketTable::Queue::iterator TicketTable::Locate(const FdTicket& ticket, const ProcessKey& process) const {
  DropExpired();
  const auto found = tickets_.find(ticket);
  return found != tickets_.end() && found->second->entry.process == process ? found->second : queue_.end();
}

void TicketTable::Erase(Queue::iterator issued) const {
  tickets_.erase(issued->ticket);
  queue_.erase(issued);
}

void TicketTable::DropExpired() const {
  const Instant now = clock_.Now();
  while (!queue_.empty() && queue_.front().expiry <= now) {
    Erase(queue_.begin());
  }
}

}  // namespace rnicd::core
