#include "daemon/pipes/pipe_message.h"

#include <algorithm>

#include "base/status.h"
#include "rnicd/v1/pipe_channel.pb.h"
#include "wire/error_detail.h"

namespace rnicd::pipes {
namespace {

absl::Status Malformed(std::string_view field = {}) {
  return MakeError(ErrorReason::FD_PACKET_MALFORMED, std::string(field));
}

absl::StatusOr<core::FdTicket> TicketFrom(const std::string& bytes) {
  core::FdTicket ticket;
  if (bytes.size() != ticket.size()) {
    return Malformed("fd_ticket");
  }
  std::copy(bytes.begin(), bytes.end(), ticket.begin());
  return ticket;
}

// A success without a field of its own would have no bytes.
std::string Serialize(const v1::PipeReply& reply) {
  std::string bytes = reply.SerializeAsString();
  return bytes.empty() ? std::string("\x20\x00", 2) : bytes;  // handle = 0.
}

}  // namespace

absl::StatusOr<Request> ParseRequest(std::string_view bytes) {
  v1::PipeRequest request;
  if (bytes.size() > kRequestBytesMax || !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed();
  }
  if (request.has_hello()) {
    return Hello();
  }
  if (request.has_give_section()) {
    RNICD_ASSIGN_OR_RETURN(const core::FdTicket ticket, TicketFrom(request.give_section().fd_ticket()));
    // A handle's value is positive and, as UniqueFd requires, an int.
    const uint32_t handle = request.give_section().handle();
    if (handle == 0 || handle > INT32_MAX) {
      return Malformed("handle");
    }
    return GiveSection{.ticket = ticket, .handle = handle};
  }
  if (request.has_take_section()) {
    RNICD_ASSIGN_OR_RETURN(const core::FdTicket ticket, TicketFrom(request.take_section().fd_ticket()));
    return TakeSection{.ticket = ticket};
  }
  return Malformed();
}

std::string HelloReply(uint16_t port, const std::string& secret) {
  v1::PipeReply reply;
  reply.set_port(port);
  reply.set_secret(secret);
  return Serialize(reply);
}

std::string SectionReply(const absl::StatusOr<uint32_t>& handle) {
  if (!handle.ok()) {
    return ErrorReply(handle.status());
  }
  v1::PipeReply reply;
  reply.set_handle(*handle);
  return Serialize(reply);
}

std::string ErrorReply(const absl::Status& error) {
  v1::PipeReply reply;
  *reply.mutable_error() = wire::ToErrorDetail(error);
  return Serialize(reply);
}

}  // namespace rnicd::pipes
