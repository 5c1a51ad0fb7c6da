#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::inline client {

// One exchange on the daemon's fd socket: connect, one FdRequest, one FdReply, close. A connection that the daemon
// refuses for now (RATE_LIMITED) is retried after the delay that it names, until the deadline. On Windows a descriptor
// is a handle of a section, and `socket_path` the name of the daemon's pipe, where the exchange is a PipeRequest and a
// PipeReply.
// Errors:  the daemon's reply (TICKET_UNKNOWN, MEMORY_NOT_SEALABLE, RATE_LIMITED, ...), or a transport failure:
//          kUnavailable when nothing listens or the daemon hung up, kDeadlineExceeded, kInternal for a reply that
//          breaks the protocol.
// Threads: safe; nothing is shared.
// Source:  fd_channel.proto, pipe_channel.proto; unix(7).

// Redeems a ticket of AllocateMemory. The descriptor is close-on-exec.
absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& socket_path, const std::string& fd_ticket,
                                         std::chrono::milliseconds deadline);

// Sends a descriptor for a ticket of ImportMemory. `fd` is borrowed and stays open.
absl::Status SendDescriptor(const std::string& socket_path, const std::string& fd_ticket, int fd,
                            std::chrono::milliseconds deadline);

}  // namespace rnicd::inline client
