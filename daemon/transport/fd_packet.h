#pragma once

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "daemon/core/ticket_table.h"

namespace rnicd::transport {

inline constexpr size_t kMaxFdPacketBytes = 4096;

// A packet of the fd socket that passed every check of form.
struct FdPacket {
  core::FdTicket ticket{};
  // Invalid when none came along.
  UniqueFd file;
};

// Reads one packet and closes whatever descriptors it should not have carried.
// Errors: FD_PACKET_MALFORMED, FD_COUNT_WRONG; kUnavailable when the peer is gone or nothing can be read.
absl::StatusOr<FdPacket> ReceiveFdPacket(int socket);

// Sends an FdReply for `outcome`, with its descriptor when it has one. A peer that does not listen loses it.
void SendFdReply(int socket, const absl::StatusOr<UniqueFd>& outcome);

}  // namespace rnicd::transport
