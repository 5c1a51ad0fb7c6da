#include "daemon/transport/fd_service.h"

#include <utility>

#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {

void ServeFdPacket(door::FileHandover& handover, const AdmittedConnection& admitted) {
  const std::shared_ptr<ClientSocket>& socket = admitted.socket;
  const absl::StatusOr<FdPacket> packet = ReceiveFdPacket(socket->get());
  if (absl::IsUnavailable(packet.status())) {
    return;
  }
  if (!packet.ok()) {
    SendFdReply(socket->get(), packet.status());
    return;
  }
  door::HandoverRequest request = {
      .caller = admitted.peer.caller,
      .owner = socket->owner(),
      .ticket = packet->ticket,
      .receive = {},
      .reply = [socket](const absl::StatusOr<UniqueFd>& outcome) { SendFdReply(socket->get(), outcome); }};
  if (packet->brings_file) {
    request.receive = [socket](Os& os) { return TakeFile(socket->get(), os); };
  }
  handover.Serve(std::move(request));
}

}  // namespace rnicd::transport
