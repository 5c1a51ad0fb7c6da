#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/system/os.h"
#include "daemon/core/memory/ticket_table.h"

namespace rnicd::transport {

inline constexpr size_t kMaxFdPacketBytes = 4096;

// A packet of the fd socket that passed every format check.
struct FdPacket {
  core::FdTicket ticket{};
  // True when it carries descriptors. Then it still waits in the socket, for TakeFile.
  bool brings_file = false;
};

// Reads one packet, but takes no descriptor: what a client sends may block whoever closes it. A packet that carries
// some stays where it is. Errors: FD_PACKET_MALFORMED, FD_COUNT_WRONG; kUnavailable when the peer has closed or nothing
// can be read.
absl::StatusOr<FdPacket> ReceiveFdPacket(int socket);

// Takes the one descriptor of the packet that waits, and closes all others. May block for as long as the client wants;
// what it returns does not block its owner. Errors: FD_COUNT_WRONG when the packet carries several; MEMORY_NOT_MEMORY.
absl::StatusOr<UniqueFd> TakeFile(int socket, Os& os);

// Sends an FdReply for `outcome`, with its descriptor when it has one. The reply is lost when the peer does not read.
void SendFdReply(int socket, const absl::StatusOr<UniqueFd>& outcome);

// The reply to a connection that is refused before its packet was read: RATE_LIMITED with the time after which to try
// again. `refusal` is one of core::kRefusals, `rate` the allowed connections per second where they were exceeded.
void SendFdRefusal(int socket, std::string_view refusal, std::chrono::milliseconds wait, uint64_t rate = 0);

}  // namespace rnicd::transport
