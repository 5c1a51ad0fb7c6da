// Requests on their way to the card, and those that are executed here.

#include "provider/verbs/verbs_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "provider/verbs/kernel_chain.h"
#include "provider/verbs/verbs_fast_region.h"
#include "provider/verbs/verbs_status.h"
#include "provider/verbs/verbs_window.h"

namespace rnicd::provider {
namespace {

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
  absl::Status sending = queue_pair_.EnterSending();
  if (!sending.ok()) {
    engine().Fail();
    engine().Run();
    return sending;
  }
  return peer;
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
  PreparedRequest& prepared = PreparedOf(request);
  if (prepared.grant == nullptr || !prepared.grant->needs_bind()) {
    return BeginResult::Done(Execute(request));
  }
  // The card must bind a window; Conclude does the rest.
  bool may_bind = false;
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    may_bind = static_cast<GrantFastRegion&>(*work->region).CanRegister();
  } else {
    const auto& bind = std::get<BindWork>(request.work.work);
    may_bind = prepared.bind_begun = static_cast<VerbsWindow&>(*bind.window).BeginBind(bind);
  }
  if (!may_bind) {
    prepared.grant.reset();
    return BeginResult::Done(NtStatus::kInvalidDeviceRequest);
  }
  ibv_send_wr work = {};
  prepared.grant->FillBind(work);
  work.send_flags = IBV_SEND_SIGNALED;
  return PostToCard(request, work);
}

NtStatus VerbsEndpoint::Execute(EngineRequest& request) {
  PreparedRequest& prepared = PreparedOf(request);
  bool done = false;
  if (auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    done = static_cast<GrantFastRegion&>(*work->region).Register(std::move(prepared.grant), std::move(work->backing));
  } else if (auto* bind = std::get_if<BindWork>(&request.work.work)) {
    auto& window = static_cast<VerbsWindow&>(*bind->window);
    done = window.BeginBind(*bind) && window.Bind(std::move(prepared.grant), *bind, queue_pair_.address().qpn);
  } else {
    const auto& invalidate = std::get<InvalidateWork>(request.work.work);
    done = invalidate.region != nullptr ? static_cast<VerbsFastRegion&>(*invalidate.region).Invalidate()
                                        : static_cast<VerbsWindow&>(*invalidate.window).Invalidate();
  }
  return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

// The last step of a request, after the card or Execute has finished.
NtStatus VerbsEndpoint::Conclude(EngineRequest& request) {
  const PreparedRequest& prepared = PreparedOf(request);
  if (prepared.grant != nullptr && prepared.grant->needs_bind()) {
    return ConcludeBind(request);
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

NtStatus VerbsEndpoint::ConcludeBind(EngineRequest& request) {
  PreparedRequest& prepared = PreparedOf(request);
  const uint32_t token = prepared.grant->token();
  auto* const bind = std::get_if<BindWork>(&request.work.work);
  auto* const work = std::get_if<FastRegisterWork>(&request.work.work);
  const bool bound = request.result.status == NtStatus::kSuccess;
  if (!bound && prepared.bind_begun) {
    static_cast<VerbsWindow&>(*bind->window).AbortBind(*bind);
  }
  if (!bound) {
    prepared.grant.reset();
    return request.result.status;
  }
  std::shared_ptr<Invalidatable> owner;
  bool in_force = false;
  if (bind != nullptr) {
    const auto window = std::static_pointer_cast<VerbsWindow>(bind->window);
    in_force = window->Bind(std::move(prepared.grant), *bind, queue_pair_.address().qpn);
    owner = window;
  } else {
    const auto region = std::static_pointer_cast<GrantFastRegion>(work->region);
    in_force = region->Register(std::move(prepared.grant), std::move(work->backing));
    owner = region;
  }
  if (in_force) {
    queue_pair_.bound().Insert(owner, token);
  }
  return in_force ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

}  // namespace rnicd::provider
