// Requests on their way to the card, and those that are executed here.

#include "provider/verbs/queue/verbs_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/fast/kernel_chain.h"
#include "provider/verbs/fast/verbs_fast_region.h"
#include "provider/verbs/fast/verbs_window.h"

namespace rnicd::provider {
namespace {

// The fast region or window of a request that has a grant.
GrantHolder& HolderOf(const WorkRequest& request) {
  if (const auto* const work = std::get_if<FastRegisterWork>(&request.work); work != nullptr) {
    return static_cast<GrantFastRegion&>(*work->region);
  }
  return static_cast<VerbsWindow&>(*std::get<BindWork>(request.work).window);
}

// True for a request that the kernel executes.
bool IsForKernel(const EngineRequest& request) {
  if (std::holds_alternative<FastRegisterWork>(request.work.work)) {
    return PreparedOf(request).uses_kernel;
  }
  const auto* invalidate = std::get_if<InvalidateWork>(&request.work.work);
  return invalidate != nullptr && invalidate->region != nullptr &&
         static_cast<VerbsFastRegion&>(*invalidate->region).is_kernel();
}

}  // namespace

absl::StatusOr<std::shared_ptr<QueuePairEngine>> VerbsEndpoint::Create(std::shared_ptr<VerbsDomain> domain,
                                                                       const QueuePairLimits& limits,
                                                                       QueuePairListener& listener) {
  VerbsNode& node = domain->context().node();
  const size_t together = domain->device().engines().kernel ? RNICD_FR_OPS_MAX : 0;
  std::unique_ptr<VerbsEndpoint> card(new VerbsEndpoint(std::move(domain), limits));
  RNICD_RETURN_IF_ERROR(card->queue_pair_.Open());
  VerbsEndpoint* const endpoint = card.get();
  const std::string address = FormatQpAddress(card->queue_pair_.address());
  auto engine =
      std::make_shared<QueuePairEngine>(std::move(card),
                                        QueuePairEngine::Options{.address = address,
                                                                 .limits = limits,
                                                                 .rules = {.local_requests_alone = true,
                                                                           .local_requests_together = together,
                                                                           .awaits_invalidations = true,
                                                                           .card_timeout = node.options.card_timeout}},
                                        node.fabric, listener);
  RNICD_RETURN_IF_ERROR(endpoint->queue_pair_.ListenTo(std::shared_ptr<CompletionSink>(engine, endpoint)));
  node.fabric.Add(address, engine);
  return engine;
}

absl::StatusOr<EnginePeer> VerbsEndpoint::Connect(std::string_view peer_address) {
  {
    MutexLock lock(mutex_);
    if (!followed_.empty()) {
      return EndOfRoute(peer_address);
    }
  }
  if (domain_->device().iwarp() != nullptr) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "qp_id");
  }
  const std::optional<QpAddress> parsed = ParseQpAddress(peer_address);
  const bool is_local = parsed.has_value() && parsed->origin == node().origin;
  // The same address may be spelled in more than one way.
  EnginePeer peer{.address = parsed.has_value() ? FormatQpAddress(*parsed) : ""};
  peer.engine = is_local ? node().fabric.Find(peer.address) : nullptr;
  if (!parsed.has_value() || is_local != (peer.engine != nullptr)) {
    return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  }
  {
    MutexLock lock(mutex_);
    peer_is_local_ = is_local;
    peer_is_rnicd_ = parsed->origin != 0;
    last_probe_ = std::chrono::steady_clock::now();
  }
  RNICD_RETURN_IF_ERROR(queue_pair_.EnterReceiving(*parsed));
  RNICD_RETURN_IF_ERROR(Sends(queue_pair_.EnterSending()));
  return peer;
}

// The card has followed the route already.
absl::StatusOr<EnginePeer> VerbsEndpoint::EndOfRoute(std::string_view peer_address) {
  EnginePeer peer{.address = followed_, .engine = peer_is_local_ ? node().fabric.Find(followed_) : nullptr};
  if (followed_ != peer_address || peer_is_local_ != (peer.engine != nullptr)) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  return peer;
}

absl::Status VerbsEndpoint::Follow(const std::string& peer_address, bool is_local) {
  MutexLock lock(mutex_);
  if (failed_ || !followed_.empty()) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  followed_ = peer_address;
  // A daemon elsewhere cannot be told from another program.
  peer_is_local_ = peer_is_rnicd_ = is_local;
  last_probe_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

absl::Status VerbsEndpoint::Follow(const QueuePairRoute& route, const std::string& peer_address, bool is_local) {
  RNICD_RETURN_IF_ERROR(Follow(peer_address, is_local));
  RNICD_RETURN_IF_ERROR(queue_pair_.EnterReceiving(route));
  return Sends(queue_pair_.EnterSending(route));
}

absl::Status VerbsEndpoint::Sends(const absl::Status& sending) {
  if (!sending.ok()) {
    engine().Fail();
    engine().Run();
  }
  return sending;
}

void VerbsEndpoint::Fail() {
  {
    MutexLock lock(mutex_);
    failed_ = true;
  }
  queue_pair_.EnterError();
}

// --- posting ---

absl::Status VerbsEndpoint::Prepare(EngineRequest& request) {
  RNICD_RETURN_IF_ERROR(PrepareRequest(domain_, request));
  // Bytes of this process may need more entries than the request had: one for each piece that cannot be mapped together
  // with its neighbours.
  const bool receive = std::holds_alternative<ReceiveWork>(request.work.work);
  const size_t most = receive ? queue_pair_.MaxReceiveEntries() : queue_pair_.MaxSendEntries();
  return PreparedOf(request).payload.size() <= most ? absl::OkStatus() : MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
}

RemoteToken VerbsEndpoint::Issue(EngineRequest& request) {
  const RemoteToken token = PreparedOf(request).token();
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    static_cast<VerbsFastRegion&>(*work->region).Issue(token);
  } else if (const auto* bind = std::get_if<BindWork>(&request.work.work)) {
    static_cast<VerbsWindow&>(*bind->window).Issue(token);
  }
  return token;
}

absl::Status VerbsEndpoint::PostReceive(EngineRequest& receive) {
  std::vector<ibv_sge> entries = TranslateReceive(*domain_, receive);
  ibv_recv_wr work = {};
  work.wr_id = receive.serial | kReceiveBit;
  work.sg_list = entries.data();
  work.num_sge = static_cast<int>(entries.size());
  const int error = queue_pair_.PostReceive(work);
  return error == 0 ? absl::OkStatus() : VerbStatus(error, "ibv_post_recv");
}

// --- executing ---

// A request that cannot be posted to the card fails in queue order: when no request is before it.
BeginResult VerbsEndpoint::Begin(EngineRequest& request, EngineTurn& turn) {
  if (request.IsLocal()) {
    return BeginLocal(request);
  }
  NtStatus failure = NtStatus::kIoTimeout;
  if (!turn.peer_lost) {
    bool peer_is_rnicd = false;
    {
      MutexLock lock(mutex_);
      peer_is_rnicd = peer_is_rnicd_;
    }
    CardSend send;
    if (TranslateSend(*domain_, request, peer_is_rnicd, send)) {
      return PostToCard(request, send.request);
    }
    failure = NtStatus::kAccessViolation;
  }
  return turn.is_first ? BeginResult::Done(failure) : BeginResult::Blocked();
}

BeginResult VerbsEndpoint::PostToCard(EngineRequest& request, ibv_send_wr& work) {
  int error = 0;
  {
    MutexLock lock(mutex_);
    if (failed_) {
      return BeginResult::Blocked();
    }
    work.wr_id = request.serial | (request.IsLocal() ? kBindBit : 0);
    error = queue_pair_.PostSend(work);
  }
  if (error == 0) {
    return BeginResult::Started();
  }
  if (MeansRemoved(error)) {
    return BeginResult::Done({.status = NtStatus::kCancelled, .peer_lost = true});
  }
  return BeginResult::Done(NtStatus::kInternalError);
}

void VerbsEndpoint::BeginTogether(std::span<EngineRequest* const> requests, EngineTurn& turn,
                                  std::span<BeginResult> results) {
  const auto other =
      std::ranges::find_if_not(requests, [](const EngineRequest* request) { return IsForKernel(*request); });
  const auto count = static_cast<size_t>(other - requests.begin());
  if (count == 0) {
    results.front() = Begin(*requests.front(), turn);
  } else {
    KernelChain(*domain_->kernel_engine()).Execute(requests.first(count), results.first(count));
  }
}

BeginResult VerbsEndpoint::BeginLocal(EngineRequest& request) {
  if (const auto* const invalidate = std::get_if<InvalidateWork>(&request.work.work); invalidate != nullptr) {
    const bool done = invalidate->region != nullptr ? static_cast<VerbsFastRegion&>(*invalidate->region).Invalidate()
                                                    : static_cast<VerbsWindow&>(*invalidate->window).Invalidate();
    return BeginResult::Done(done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest);
  }
  const PreparedRequest& prepared = PreparedOf(request);
  GrantHolder& holder = HolderOf(request.work);
  if (!prepared.grant->needs_bind()) {
    return BeginResult::Done(holder.Execute(request, prepared.token(), queue_pair_.address().qpn));
  }
  // The card must bind a window; Conclude does the rest.
  if (!holder.BeginBind(request)) {
    return BeginResult::Done(NtStatus::kInvalidDeviceRequest);
  }
  ibv_send_wr work = {};
  prepared.own_grant()->FillBind(work);
  work.send_flags = IBV_SEND_SIGNALED;
  return PostToCard(request, work);
}

// The last step of a request, after the card or BeginLocal has finished.
NtStatus VerbsEndpoint::Conclude(EngineRequest& request) {
  const PreparedRequest& prepared = PreparedOf(request);
  if (prepared.grant != nullptr && prepared.grant->needs_bind()) {
    return HolderOf(request.work)
        .ConcludeBind(request, prepared.token(), queue_pair_.address().qpn, queue_pair_.bound());
  }
  const std::optional<LocalToken> token = TokenToInvalidate(request.work);
  if (request.result.status != NtStatus::kSuccess || !token.has_value()) {
    return request.result.status;
  }
  const std::optional<LocalKey> key = domain_->FindLocal(token->value);
  const std::shared_ptr<Invalidatable> owner = key.has_value() ? key->owner.lock() : nullptr;
  return owner != nullptr && owner->InvalidateToken(token->value, std::nullopt) ? NtStatus::kSuccess
                                                                                : NtStatus::kInvalidDeviceRequest;
}

}  // namespace rnicd::provider
