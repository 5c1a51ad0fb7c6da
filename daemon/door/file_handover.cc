#include "daemon/door/file_handover.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/session/fd_exchange.h"

namespace rnicd::door {
namespace {

// What a message needs until its reply; shared, because jobs are copied.
struct Exchange {
  HandoverRequest request;
  absl::StatusOr<core::ImportedFile> file = core::ImportedFile();
};

absl::StatusOr<core::ImportedFile> ReceiveImport(const HandoverRequest& request, Os& os) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd file, request.receive(os));
  return core::PrepareImport(os, std::move(file));
}

// One owner with many processes gets one round-robin slot.
void PostToWorker(core::Node& node, const std::shared_ptr<Exchange>& exchange) {
  node.fd_workers.PostFor(std::hash<std::string>()(exchange->request.owner), [&node, exchange] {
    const HandoverRequest& request = exchange->request;
    request.reply(core::ExchangeFd(node, request.caller, request.ticket, std::move(exchange->file)));
    // A quick client has released its memory already, and the file of the reply was the last.
    node.lingering.Sweep();
  });
}

}  // namespace

FileHandover::FileHandover(core::Node& node, Bulkhead& bulkhead)
    : node_(node), bulkhead_(bulkhead), link_(std::make_shared<Link>()) {
  MutexLock lock(link_->mutex);
  link_->node = &node;
}

FileHandover::~FileHandover() {
  MutexLock lock(link_->mutex);
  link_->node = nullptr;
}

void FileHandover::Serve(HandoverRequest request) {
  const auto exchange = std::make_shared<Exchange>(Exchange{.request = std::move(request)});
  if (exchange->request.receive == nullptr) {
    PostToWorker(node_, exchange);
    return;
  }
  absl::Status wanted =
      core::CheckFdTicket(node_, exchange->request.caller, exchange->request.ticket, /*brings_file=*/true);
  if (!wanted.ok()) {
    exchange->request.reply(std::move(wanted));
    return;
  }
  const auto take = [exchange, link = link_, &os = node_.os] {
    exchange->file = ReceiveImport(exchange->request, os);
    MutexLock lock(link->mutex);
    if (link->node != nullptr) {
      PostToWorker(*link->node, exchange);
    }
  };
  if (!bulkhead_.TryRun(exchange->request.owner, take)) {
    exchange->request.reply(MakeError(ErrorReason::FD_BLOCKED));
  }
}

}  // namespace rnicd::door
