// Connecting, and requests on their way to the card.

#include "provider/networkdirect/queue/nd_endpoint.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/status.h"
#include "provider/networkdirect/fast/nd_fast_region.h"
#include "provider/networkdirect/fast/nd_window.h"

namespace rnicd::provider {
namespace {

std::string AddressOf(uint64_t number) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "nd%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

ND2_REQUEST_TYPE TypeOfTransfer(const WorkRequest& request) {
  if (std::holds_alternative<ReadWork>(request.work)) {
    return Nd2RequestTypeRead;
  }
  return std::holds_alternative<WriteWork>(request.work) ? Nd2RequestTypeWrite : Nd2RequestTypeSend;
}

}  // namespace

absl::StatusOr<std::shared_ptr<QueuePairEngine>> NdEndpoint::Create(std::shared_ptr<NdDomain> domain,
                                                                    const QueuePairLimits& limits,
                                                                    QueuePairListener& listener) {
  NdNode& node = domain->node();
  uint64_t number = node.random.Next();
  while (!node.fabric.Reserve(AddressOf(number))) {
    number = node.random.Next();
  }
  const std::string address = AddressOf(number);
  absl::StatusOr<std::shared_ptr<NdLink>> link = NdLink::Open(domain, limits);
  if (!link.ok()) {
    node.fabric.Remove(address);
    return link.status();
  }
  std::unique_ptr<NdEndpoint> card(new NdEndpoint(std::move(domain), number, limits));
  NdEndpoint* const endpoint = card.get();
  endpoint->send_link_ = *std::move(link);
  auto engine =
      std::make_shared<QueuePairEngine>(std::move(card),
                                        QueuePairEngine::Options{.address = address,
                                                                 .limits = limits,
                                                                 .rules = {.local_requests_alone = true,
                                                                           .awaits_invalidations = true,
                                                                           .card_timeout = node.options.card_timeout}},
                                        node.fabric, listener);
  const std::shared_ptr<NdEndpoint> shared(engine, endpoint);
  endpoint->send_link_->ListenTo(std::shared_ptr<NdLink::Sink>(shared));
  node.rendezvous.Add(address, shared);
  node.fabric.Add(address, engine);
  return engine;
}

std::shared_ptr<NdEndpoint> NdEndpoint::Self() { return {engine().shared_from_this(), this}; }

// --- connecting ---

absl::StatusOr<EnginePeer> NdEndpoint::Connect(std::string_view peer_address) {
  EnginePeer peer{.address = std::string(peer_address), .engine = node().fabric.Find(peer_address)};
  if (peer.engine == nullptr) {
    return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  }
  const bool to_itself = peer.address == engine().address();
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<NdLink> receive_link, ReceiveLink(to_itself));
  absl::Status begun = BeginReceives(std::move(receive_link), peer.address);
  if (begun.ok()) {
    const std::shared_ptr<NdEndpoint> partner = node().rendezvous.Match(engine().address(), peer.address);
    begun = partner != nullptr ? BeginHandshake(*partner) : absl::OkStatus();
  }
  if (!begun.ok()) {
    engine().Fail();
    engine().Run();
    return begun;
  }
  return peer;
}

absl::StatusOr<std::shared_ptr<NdLink>> NdEndpoint::ReceiveLink(bool to_itself) {
  if (!to_itself) {
    return send_link_;
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<NdLink> link, NdLink::Open(domain_, limits_));
  link->ListenTo(std::shared_ptr<NdLink::Sink>(Self()));
  return link;
}

// In one step, so that a receive which is posted meanwhile is behind the early ones.
absl::Status NdEndpoint::BeginReceives(std::shared_ptr<NdLink> link, const std::string& peer_address) {
  MutexLock lock(mutex_);
  receiving_.link = std::move(link);
  peer_address_ = peer_address;
  for (CardReceive& receive : std::exchange(receiving_.early, {})) {
    RNICD_RETURN_IF_ERROR(PostToCard(std::move(receive)));
  }
  return absl::OkStatus();
}

// This side asks; the peer, which connected first, is asked. If the peer has ended, the engine finds that out.
absl::Status NdEndpoint::BeginHandshake(NdEndpoint& peer) {
  const uint64_t ticket = node().random.Next();
  RNICD_ASSIGN_OR_RETURN(const std::optional<NdAddress> address, peer.ExpectRequest(ticket));
  if (address.has_value()) {
    send_link_->Connect(*address, ticket);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<NdAddress>> NdEndpoint::ExpectRequest(uint64_t ticket) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<NdListener> listener, domain_->Listener());
  MutexLock lock(mutex_);
  if (failed_) {
    return std::nullopt;
  }
  expected_ = {.listener = std::move(listener), .ticket = ticket};
  expected_.listener->Expect(ticket, [weak = std::weak_ptr<NdLink>(receiving_.link)](ComPtr<IND2Connector> connector) {
    if (const std::shared_ptr<NdLink> link = weak.lock(); link != nullptr) {
      link->Accept(std::move(connector));
    } else {
      connector->Reject(nullptr, 0);
    }
  });
  return expected_.listener->address();
}

bool NdEndpoint::is_connected() const {
  MutexLock lock(mutex_);
  return receiving_.link != nullptr && receiving_.link->state() == NdLink::State::kUp &&
         send_link_->state() == NdLink::State::kUp;
}

void NdEndpoint::OnUp() {
  if (is_connected()) {
    engine().Run();
  }
}

// A peer that waits for a connection which could not be made learns of it because this side fails.
void NdEndpoint::OnDown(bool was_up) {
  engine().LosePeer();
  if (!was_up && !PeerHasEnded()) {
    engine().Fail(NtStatus::kIoTimeout);
  }
  engine().Run();
}

bool NdEndpoint::PeerHasEnded() {
  std::string address;
  {
    MutexLock lock(mutex_);
    address = peer_address_;
  }
  const std::shared_ptr<QueuePairEngine> peer = node().fabric.Find(address);
  return peer == nullptr || peer->state() == QueuePairState::kError;
}

// --- posting ---

absl::Status NdEndpoint::Prepare(EngineRequest& request) {
  RNICD_RETURN_IF_ERROR(PrepareNdRequest(domain_, request, is_connected()));
  // Bytes of this process may need more entries than the card takes.
  return NdPreparedOf(request).payload.size() <= send_link_->max_entries() ? absl::OkStatus()
                                                                           : MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
}

RemoteToken NdEndpoint::Issue(EngineRequest& request) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  if (const auto* work = std::get_if<FastRegisterWork>(&request.work.work)) {
    static_cast<NdFastRegion&>(*work->region).Issue(prepared.Issue());
  } else if (const auto* bind = std::get_if<BindWork>(&request.work.work)) {
    static_cast<NdWindow&>(*bind->window).Issue(prepared.Issue());
  }
  return prepared.token;
}

absl::Status NdEndpoint::PostReceive(EngineRequest& receive) {
  std::optional<CardEntries> entries = TranslateEntries(*domain_, receive, LocalUse::kSink);
  NdPreparedOf(receive).refused = !entries.has_value();
  CardReceive card_receive{.serial = receive.serial, .entries = std::move(entries).value_or(CardEntries())};
  if (card_receive.entries.size() > send_link_->max_receive_entries()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  MutexLock lock(mutex_);
  if (receiving_.link != nullptr) {
    return PostToCard(std::move(card_receive));
  }
  receiving_.early.push_back(std::move(card_receive));
  return absl::OkStatus();
}

absl::Status NdEndpoint::PostToCard(CardReceive receive) {
  const ComPtr<IND2QueuePair> pair = receiving_.link->queue_pair();
  if (failed_ || !pair) {
    return absl::OkStatus();
  }
  const HRESULT result = domain_->device().Observe(pair->Receive(
      ContextOf(receive.serial | kReceiveBit), receive.entries.data(), static_cast<ULONG>(receive.entries.size())));
  if (NdFailed(result)) {
    return OutcomeOf(result, Nd2RequestTypeReceive).peer_lost ? absl::OkStatus()
                                                              : NdStatus(result, "IND2QueuePair::Receive");
  }
  ++at_card_;
  return absl::OkStatus();
}

// --- transfers ---

NdEndpoint::Reach NdEndpoint::ReachPeer(const EngineTurn& turn) const {
  if (turn.peer_lost || turn.peer == nullptr) {
    return Reach::kGone;
  }
  MutexLock lock(mutex_);
  const NdLink::State send = send_link_->state();
  const NdLink::State receive = receiving_.link->state();
  if (send == NdLink::State::kDown || receive == NdLink::State::kDown) {
    return Reach::kLost;
  }
  if (send == NdLink::State::kUp && receive == NdLink::State::kUp) {
    return Reach::kUp;
  }
  const NdRendezvous::Relation relation = domain_->node().rendezvous.RelationOf(engine().address(), peer_address_);
  return relation == NdRendezvous::Relation::kElsewhere ? Reach::kGone : Reach::kWaits;
}

BeginResult NdEndpoint::Begin(EngineRequest& request, EngineTurn& turn) {
  if (request.IsLocal()) {
    return BeginLocal(request);
  }
  if (turn.resumed) {
    return PostParts(request, turn);
  }
  switch (ReachPeer(turn)) {
    case Reach::kWaits:
      return BeginResult::Blocked();
    case Reach::kLost:
      engine().LosePeer();  // Before this side fails: the loop's thread may not have reported it yet.
      [[fallthrough]];
    case Reach::kGone:
      return turn.is_first ? BeginResult::Done(NtStatus::kIoTimeout) : BeginResult::Blocked();
    case Reach::kUp:
      return BeginTransfer(request, turn);
  }
  return BeginResult::Blocked();
}

// A request that cannot be posted to the card fails in queue order: when no request is before it.
BeginResult NdEndpoint::BeginTransfer(EngineRequest& request, EngineTurn& turn) {
  using Kind = NdTranslation::Kind;
  NdPreparedRequest& prepared = NdPreparedOf(request);
  auto& peer = static_cast<NdEndpoint&>(*turn.peer_card);
  uint32_t max_entries = send_link_->max_entries();
  if (request.IsRead()) {
    max_entries = std::clamp(domain_->device().info().max_read_request_sge, 1U, max_entries);
  }
  NdTranslation translation = TranslateTransfer(*domain_, *peer.domain_, request, max_entries);
  if (translation.kind == Kind::kDone) {
    prepared.parts = std::move(translation.parts);
    prepared.next_part = 0;
    return PostParts(request, turn);
  }
  if (!turn.is_first) {
    return BeginResult::Blocked();
  }
  if (translation.kind == Kind::kRefusedByPeer) {
    return BeginResult::Done({.status = NtStatus::kAccessViolation, .at_peer = true});
  }
  return BeginResult::Done(translation.kind == Kind::kRefusedHere ? NtStatus::kAccessViolation
                                                                  : NtStatus::kDataOverrun);
}

HRESULT NdEndpoint::PostPart(IND2QueuePair& pair, const EngineRequest& request, const CardRequestPart& part) {
  void* const context = ContextOf(request.serial);
  const auto count = static_cast<ULONG>(part.entries.size());
  const ULONG flags = NdOpFlags(request.work);
  switch (TypeOfTransfer(request.work)) {
    case Nd2RequestTypeRead:
      return pair.Read(context, part.entries.data(), count, part.remote_address, part.remote_token, flags);
    case Nd2RequestTypeWrite:
      return pair.Write(context, part.entries.data(), count, part.remote_address, part.remote_token, flags);
    default:
      return pair.Send(context, part.entries.data(), count, flags);
  }
}

// As many parts as the card has room for; the rest follows when they are done, and later requests wait for it.
BeginResult NdEndpoint::PostParts(EngineRequest& request, EngineTurn& turn) {
  NdPreparedRequest& prepared = NdPreparedOf(request);
  const auto* const send = std::get_if<SendWork>(&request.work.work);
  const ComPtr<IND2QueuePair> pair = send_link_->queue_pair();
  HRESULT result = kNdSuccess;
  {
    MutexLock lock(mutex_);
    if (failed_ || !pair || initiated_ >= limits_.initiator_depth) {
      return BeginResult::Blocked();
    }
    if (send != nullptr) {
      static_cast<NdEndpoint&>(*turn.peer_card).notes_.Push(*send);
    }
    uint32_t posted = 0;
    while (prepared.next_part < prepared.parts.size() && initiated_ < limits_.initiator_depth) {
      result = domain_->device().Observe(PostPart(*pair, request, prepared.parts[prepared.next_part]));
      if (NdFailed(result)) {
        break;
      }
      ++prepared.next_part;
      ++posted;
      ++initiated_;
      ++at_card_;
    }
    const bool more = prepared.next_part < prepared.parts.size();
    if (posted > 0 && prepared.parts.size() > 1) {
      const CardOutcome outcome = OutcomeOf(result, TypeOfTransfer(request.work));
      waves_[request.serial] = {.at_card = posted, .more = more, .outcome = outcome};
    }
    if (posted > 0) {
      return BeginResult::Started(/*holds_back=*/more);
    }
    if (send != nullptr) {
      static_cast<NdEndpoint&>(*turn.peer_card).notes_.UndoPush();
    }
  }
  return RefusedByCard(result, TypeOfTransfer(request.work), turn);
}

BeginResult NdEndpoint::RefusedByCard(HRESULT result, ND2_REQUEST_TYPE type, const EngineTurn& turn) {
  const CardOutcome outcome = OutcomeOf(result, type);
  if (outcome.peer_lost) {
    engine().LosePeer();
  }
  // A part of a resumed request has been executed, so it cannot wait for its turn.
  if (!turn.is_first && !turn.resumed) {
    return BeginResult::Blocked();
  }
  return BeginResult::Done(outcome.status);
}

// --- the end ---

void NdEndpoint::Fail() {
  std::shared_ptr<NdLink> receive_link;
  bool nothing_at_card = false;
  {
    MutexLock lock(mutex_);
    failed_ = true;
    receiving_.early.clear();
    receive_link = receiving_.link;
    nothing_at_card = at_card_ == 0;
  }
  send_link_->Fail();
  if (receive_link != nullptr) {
    receive_link->Fail();
  }
  if (nothing_at_card) {
    engine().Abandon();
  }
}

void NdEndpoint::Close() {
  node().rendezvous.Remove(engine().address());
  bound_.End();
  std::shared_ptr<NdLink> receive_link;
  Expectation expected;
  {
    MutexLock lock(mutex_);
    receive_link = receiving_.link;
    expected = std::exchange(expected_, {});
  }
  if (expected.listener != nullptr) {
    expected.listener->Forget(expected.ticket);
  }
  send_link_->Close();
  if (receive_link != nullptr) {
    receive_link->Close();
  }
}

}  // namespace rnicd::provider
