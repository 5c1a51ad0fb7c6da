#include "daemon/core/fd_exchange.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "daemon/core/session.h"

namespace rnicd::core {

absl::StatusOr<UniqueFd> ExchangeFd(Node& node, const Caller& caller, const FdTicket& ticket, UniqueFd file) {
  RNICD_ASSIGN_OR_RETURN(const TicketTable::Entry entry, node.tickets.Redeem(ticket, caller.process));
  const std::shared_ptr<Session> session = entry.session.lock();
  if (session == nullptr) {
    return MakeError(ErrorReason::TICKET_UNKNOWN, "fd_ticket");
  }
  RNICD_ASSIGN_OR_RETURN(const Session::Guard guard, session->Begin());
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, session->FindMemory(entry.memory));
  if (entry.direction == FdDirection::kToClient) {
    return file.valid() ? MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count") : memory->DuplicateFile();
  }
  absl::Status status =
      file.valid() ? memory->Attach(std::move(file)) : MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count");
  if (!status.ok()) {
    session->DropMemory(entry.memory);
    return status;
  }
  return UniqueFd();
}

}  // namespace rnicd::core
