#pragma once

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "daemon/core/ticket_table.h"

namespace rnicd::transport {

inline constexpr size_t kMaxFdPacketBytes = 4096;

// A packet of the fd socket that passed every format check.
struct FdPacket {
  core::FdTicket ticket{};
  // Descriptor of the packet; invalid when there was none.
  UniqueFd file;
};

// Reads one packet and closes all descriptors it should not have carried.
// Errors: FD_PACKET_MALFORMED, FD_COUNT_WRONG; kUnavailable when the peer has closed or nothing can be read.
absl::StatusOr<FdPacket> ReceiveFdPacket(int socket);

// Sends an FdReply for `outcome`, with its descriptor when it has one. The reply is lost when the peer does not read.
void SendFdReply(int socket, const absl::StatusOr<UniqueFd>& outcome);

}  // namespace rnicd::transport
