#include "daemon/pipes/section_service.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/pipes/section_transfer.h"

namespace rnicd::pipes {
namespace {

// What a message needs until its reply; shared, because jobs are copied.
struct Exchange {
  SectionRequest request;
  std::string owner;
  absl::StatusOr<core::ImportedFile> file = core::ImportedFile();
};

absl::StatusOr<core::ImportedFile> ReceiveImport(const SectionRequest& request, Os& os) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd section, TakeFromClient(*request.peer.process, request.given, os));
  return core::PrepareImport(os, std::move(section));
}

absl::StatusOr<uint32_t> Redeem(core::Node& node, Exchange& exchange) {
  RNICD_ASSIGN_OR_RETURN(const UniqueFd outcome, core::ExchangeFd(node, exchange.request.peer.caller,
                                                                  exchange.request.ticket, std::move(exchange.file)));
  return outcome.valid() ? GiveToClient(*exchange.request.peer.process, outcome, node.os) : 0;
}

// One owner with many processes gets one round-robin slot.
void PostToWorker(core::Node& node, const std::shared_ptr<Exchange>& exchange) {
  node.fd_workers.PostFor(std::hash<std::string>()(exchange->owner), [&node, exchange] {
    exchange->request.on_done(Redeem(node, *exchange));
    // A quick client has released its memory already, and this handle was the last.
    node.lingering.Sweep();
  });
}

}  // namespace

SectionService::SectionService(core::Node& node, door::Bulkhead& bulkhead)
    : node_(node), bulkhead_(bulkhead), link_(std::make_shared<Link>()) {
  MutexLock lock(link_->mutex);
  link_->node = &node;
}

SectionService::~SectionService() {
  MutexLock lock(link_->mutex);
  link_->node = nullptr;
}

void SectionService::Serve(SectionRequest request) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->owner = core::OwnerOf(request.peer.caller);
  exchange->request = std::move(request);
  if (exchange->request.given == 0) {
    PostToWorker(node_, exchange);
    return;
  }
  const absl::Status wanted = core::CheckFdTicket(node_, exchange->request.peer.caller, exchange->request.ticket,
                                                  /*brings_file=*/true);
  if (!wanted.ok()) {
    exchange->request.on_done(wanted);
    return;
  }
  const auto take = [exchange, link = link_, &os = node_.os] {
    exchange->file = ReceiveImport(exchange->request, os);
    MutexLock lock(link->mutex);
    if (link->node != nullptr) {
      PostToWorker(*link->node, exchange);
    }
  };
  if (!bulkhead_.TryRun(exchange->owner, take)) {
    exchange->request.on_done(MakeError(ErrorReason::FD_BLOCKED));
  }
}

}  // namespace rnicd::pipes
