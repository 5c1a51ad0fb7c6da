#pragma once

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "daemon/core/memory/memory_object.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::core {

// Whether ExchangeFd would look at a descriptor that comes with this ticket. A refusal is reported as one of
// ExchangeFd. Errors: TICKET_UNKNOWN; FD_COUNT_WRONG when the ticket is for the other direction, and stays valid.
absl::Status CheckFdTicket(Node& node, const Caller& caller, const FdTicket& ticket, bool brings_file);

// Redeems a ticket: takes `file` for an import, or returns a descriptor for a fetch (an invalid one after an import).
// `file` is an error when the client sent one that must be ignored. An import whose file is refused releases its memory
// object: the owner starts over with ImportMemory. A file without the facts of PrepareImport lets the client block the
// call.
// Errors: TICKET_UNKNOWN; FD_COUNT_WRONG and SESSION_ENDING, which leave the ticket valid; OBJECT_NOT_FOUND (released
// meanwhile); that of `file`; those of MemoryObject::Attach and DuplicateFile.
absl::StatusOr<UniqueFd> ExchangeFd(Node& node, const Caller& caller, const FdTicket& ticket,
                                    absl::StatusOr<ImportedFile> file);

}  // namespace rnicd::core
