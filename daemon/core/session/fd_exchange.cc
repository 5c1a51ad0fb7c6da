#include "daemon/core/session/fd_exchange.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/status.h"
#include "daemon/core/session/session.h"

namespace rnicd::core {
namespace {

// An entry and its session, while both exist.
struct Redeemable {
  TicketTable::Entry entry;
  std::shared_ptr<Lease> session;
};

bool Brings(const absl::StatusOr<ImportedFile>& file) { return !file.ok() || file->file.valid(); }

absl::StatusOr<Redeemable> Find(Node& node, const Caller& caller, const FdTicket& ticket) {
  const absl::StatusOr<TicketTable::Entry> entry = node.tickets.Find(ticket, caller.process);
  std::shared_ptr<Lease> session = entry.ok() ? entry->session.lock() : nullptr;
  if (session == nullptr) {
    absl::Status refused = MakeError(ErrorReason::TICKET_UNKNOWN, "fd_ticket");
    node.observer.Report(Decision{.what = "fd", .caller = &caller, .status = refused});
    return refused;
  }
  return Redeemable{.entry = *entry, .session = std::move(session)};
}

// "memory_id=7", as the audit log names it.
struct ObjectName {
  std::string operator()(MemoryObjectId memory) const { return "memory_id=" + std::to_string(memory.value); }
  std::string operator()(RingDescriptor ring) const { return "ring_id=" + std::to_string(ring.ring.value); }
  std::string operator()(QueueDescriptor queue) const { return "cq_id=" + std::to_string(queue.queue.value); }
};

void Report(Node& node, const Caller& caller, const Redeemable& found, const absl::Status& status) {
  node.observer.Report(Decision{.what = "fd",
                                .caller = &caller,
                                .tenant = found.session->tenant().name(),
                                .workload = found.session->tenant().workload(),
                                .session = found.session->id(),
                                .object = std::visit(ObjectName(), found.entry.object),
                                .status = status,
                                .note = found.entry.direction == FdDirection::kToClient ? "to_client" : "to_daemon"});
}

// Before the ticket is used up: its owner can send the packet again, with the right number of descriptors.
absl::Status CheckDirection(const Redeemable& found, bool brings_file) {
  return brings_file == (found.entry.direction == FdDirection::kToDaemon)
             ? absl::OkStatus()
             : MakeError(ErrorReason::FD_COUNT_WRONG, "fd_count");
}

// Hands the descriptor of the entry's object over, or gives `file` to it.
struct Transfer {
  const SessionGuard& session;
  FdDirection direction;
  absl::StatusOr<ImportedFile> file;

  absl::StatusOr<UniqueFd> operator()(MemoryObjectId id) {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, session.memory().Find(id));
    if (direction == FdDirection::kToClient) {
      return memory->DuplicateFile();
    }
    absl::Status status = file.ok() ? memory->Attach(*std::move(file)) : file.status();
    if (!status.ok()) {
      session.memory().Drop(id);
      return status;
    }
    return UniqueFd();
  }
  absl::StatusOr<UniqueFd> operator()(RingDescriptor ring) const {
    return session.rings().Duplicate(ring.ring, ring.which);
  }
  absl::StatusOr<UniqueFd> operator()(QueueDescriptor queue) const {
    return session.queues().Duplicate(queue.queue, queue.which);
  }
};

absl::StatusOr<UniqueFd> Exchange(TicketTable& tickets, const FdTicket& ticket, const Redeemable& found,
                                  absl::StatusOr<ImportedFile> file) {
  RNICD_RETURN_IF_ERROR(CheckDirection(found, Brings(file)));
  RNICD_ASSIGN_OR_RETURN(const SessionGuard session, found.session->Begin());
  // Not the file's fault: the packet can be sent again.
  if (FailedWith(file.status(), ErrorReason::FD_COUNT_WRONG)) {
    return file.status();
  }
  RNICD_RETURN_IF_ERROR(tickets.Redeem(ticket, found.entry.process));
  return std::visit(Transfer{session, found.entry.direction, std::move(file)}, found.entry.object);
}

}  // namespace

absl::Status CheckFdTicket(Node& node, const Caller& caller, const FdTicket& ticket, bool brings_file) {
  RNICD_ASSIGN_OR_RETURN(const Redeemable found, Find(node, caller, ticket));
  absl::Status status = CheckDirection(found, brings_file);
  if (!status.ok()) {
    Report(node, caller, found, status);
  }
  return status;
}

absl::StatusOr<UniqueFd> ExchangeFd(Node& node, const Caller& caller, const FdTicket& ticket,
                                    absl::StatusOr<ImportedFile> file) {
  RNICD_ASSIGN_OR_RETURN(const Redeemable found, Find(node, caller, ticket));
  absl::StatusOr<UniqueFd> outcome = Exchange(node.tickets, ticket, found, std::move(file));
  Report(node, caller, found, outcome.status());
  return outcome;
}

}  // namespace rnicd::core
