#include "daemon/core/fd_exchange.h"

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/core/session.h"

namespace rnicd::core {
namespace {

absl::StatusOr<UniqueFd> Transfer(const TicketTable::Entry& entry, Session& session, UniqueFd file) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, session.FindMemory(entry.memory));
  if (entry.direction == FdDirection::kToClient) {
    return memory->DuplicateFile();
  }
  absl::Status status = memory->Attach(std::move(file));
  if (!status.ok()) {
    session.DropMemory(entry.memory);
    return status;
  }
  return UniqueFd();
}

absl::StatusOr<UniqueFd> Exchange(TicketTable& tickets, const FdTicket& ticket, const TicketTable::Entry& entry,
                                  Session& session, UniqueFd file) {
  // Before the ticket is used up: its owner can send the packet again, with the right number of descriptors.
  if (file.valid() != (entry.direction == FdDirection::kToDaemon)) {
    return MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count");
  }
  RNICD_ASSIGN_OR_RETURN(const Session::Guard guard, session.Begin());
  RNICD_RETURN_IF_ERROR(tickets.Redeem(ticket, entry.process));
  return Transfer(entry, session, std::move(file));
}

}  // namespace

absl::StatusOr<UniqueFd> ExchangeFd(Node& node, const Caller& caller, const FdTicket& ticket, UniqueFd file) {
  const absl::StatusOr<TicketTable::Entry> entry = node.tickets.Find(ticket, caller.process);
  const std::shared_ptr<Session> session = entry.ok() ? entry->session.lock() : nullptr;
  if (session == nullptr) {
    absl::Status refused = MakeError(ErrorReason::TICKET_UNKNOWN, "fd_ticket");
    node.observer.OnDecision({.what = "fd", .caller = &caller, .status = refused});
    return refused;
  }
  absl::StatusOr<UniqueFd> outcome = Exchange(node.tickets, ticket, *entry, *session, std::move(file));
  node.observer.OnDecision({.what = "fd",
                            .caller = &caller,
                            .tenant = session->tenant().name(),
                            .workload = session->tenant().workload(),
                            .session = session->id(),
                            .object = "memory_id=" + std::to_string(entry->memory.value),
                            .status = outcome.status(),
                            .note = entry->direction == FdDirection::kToClient ? "to_client" : "to_daemon"});
  return outcome;
}

}  // namespace rnicd::core
