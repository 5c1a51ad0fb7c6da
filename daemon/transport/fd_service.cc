#include "daemon/transport/fd_service.h"

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {
namespace {

// What a packet needs until its reply; shared, because jobs are copied.
struct Exchange {
  Visitor visitor;
  core::FdTicket ticket{};
  absl::StatusOr<core::ImportedFile> file = core::ImportedFile();
};

absl::StatusOr<core::ImportedFile> ReceiveImport(int socket, Os& os) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd file, TakeFile(socket, os));
  return core::PrepareImport(os, std::move(file));
}

// One owner with many processes gets one round-robin slot.
void PostToWorker(core::Node& node, const std::shared_ptr<Exchange>& exchange) {
  node.fd_workers.PostFor(std::hash<std::string>()(exchange->visitor.socket->owner()), [&node, exchange] {
    absl::StatusOr<UniqueFd> outcome =
        core::ExchangeFd(node, exchange->visitor.peer.caller, exchange->ticket, std::move(exchange->file));
    SendFdReply(exchange->visitor.socket->get(), outcome);
    // A quick client has released its memory already, and this descriptor was the last.
    outcome = UniqueFd();
    node.lingering.Sweep();
  });
}

}  // namespace

FdService::FdService(core::Node& node, door::Bulkhead& bulkhead)
    : node_(node), bulkhead_(bulkhead), link_(std::make_shared<Link>()) {
  MutexLock lock(link_->mutex);
  link_->node = &node;
}

FdService::~FdService() {
  MutexLock lock(link_->mutex);
  link_->node = nullptr;
}

void FdService::Serve(Visitor visitor) {
  const int socket = visitor.socket->get();
  const absl::StatusOr<FdPacket> packet = ReceiveFdPacket(socket);
  if (absl::IsUnavailable(packet.status())) {
    return;
  }
  absl::Status status = packet.status();
  if (status.ok() && packet->brings_file) {
    status = core::CheckFdTicket(node_, visitor.peer.caller, packet->ticket, /*brings_file=*/true);
  }
  if (!status.ok()) {
    SendFdReply(socket, status);
    return;
  }
  const auto exchange = std::make_shared<Exchange>(Exchange{.visitor = std::move(visitor), .ticket = packet->ticket});
  if (!packet->brings_file) {
    PostToWorker(node_, exchange);
    return;
  }
  const auto take = [exchange, link = link_, &os = node_.os] {
    exchange->file = ReceiveImport(exchange->visitor.socket->get(), os);
    MutexLock lock(link->mutex);
    if (link->node != nullptr) {
      PostToWorker(*link->node, exchange);
    }
  };
  if (!bulkhead_.TryRun(exchange->visitor.socket->owner(), take)) {
    SendFdReply(socket, MakeError(ErrorReason::FD_BLOCKED));
  }
}

}  // namespace rnicd::transport
