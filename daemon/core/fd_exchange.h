#pragma once

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "daemon/core/caller.h"
#include "daemon/core/node.h"
#include "daemon/core/ticket_table.h"

namespace rnicd::core {

// Redeems a ticket: takes `file` for an import, or returns a descriptor for a fetch (an invalid one after an import).
// An import whose file is refused releases its memory object: the owner starts over with ImportMemory. May block while
// memory is populated; run it on a worker. Errors: TICKET_UNKNOWN; FD_COUNT_WRONG and SESSION_ENDING, which leave the
// ticket valid; OBJECT_NOT_FOUND (released meanwhile), and those of MemoryObject::Attach and DuplicateFile.
absl::StatusOr<UniqueFd> ExchangeFd(Node& node, const Caller& caller, const FdTicket& ticket, UniqueFd file);

}  // namespace rnicd::core
