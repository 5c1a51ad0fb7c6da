#include "tests/simulation/model/card.h"

#include <algorithm>
#include <utility>

namespace rnicd::simulation {
namespace {

using provider::QueuePairState;

constexpr uint32_t kMaxReadsUnderWay = 16;

OperationType TypeOf(RequestKind kind) {
  switch (kind) {
    case RequestKind::kSend:
      return OperationType::kSend;
    case RequestKind::kReceive:
      return OperationType::kReceive;
    case RequestKind::kRead:
      return OperationType::kRead;
    case RequestKind::kWrite:
      return OperationType::kWrite;
    case RequestKind::kFastRegister:
      return OperationType::kFastRegister;
    case RequestKind::kInvalidate:
      return OperationType::kInvalidate;
    case RequestKind::kBind:
      return OperationType::kBind;
  }
  return OperationType::kSend;
}

// Stands for the status of the reason for which a request was refused.
constexpr NtStatus kRefused = NtStatus::kInternalError;

void Owe(QueuePair& pair, provider::WorkQueue queue, const provider::Completion& completion,
         const Refusals& refused = {}) {
  pair.due[static_cast<size_t>(queue)].push_back(
      {.completion = completion, .refused = completion.status == kRefused ? refused : Refusals()});
}

NtStatus WhenFlushed(const Request& request) {
  return request.status == NtStatus::kSuccess ? NtStatus::kCancelled : request.status;
}

}  // namespace

void Card::Connect(QueuePair& pair, const std::shared_ptr<QueuePair>& peer) {
  pair.state = QueuePairState::kReadyToSend;
  pair.peer = peer;
  pair.peer_number = peer->number;
  const auto visitors = std::move(pair.early_visitors);
  pair.early_visitors.clear();
  for (const auto& [address, weak] : visitors) {
    if (const std::shared_ptr<QueuePair> visitor = weak.lock(); visitor != nullptr) {
      Kick(*visitor);
    }
  }
  if (peer->state == QueuePairState::kError) {
    LoseConnection(pair, *peer, /*fatal=*/false);
    return;
  }
  if (peer->state == QueuePairState::kInit) {
    peer->early_visitors[pair.address] = pair.weak_from_this();
  }
  Kick(pair);
}

void Card::Disconnect(QueuePair& pair) {
  pair.disconnecting = true;
  for (Request& request : pair.slots) {
    if (request.stage == Request::Stage::kReading) {
      request.stage = Request::Stage::kLanding;
    }
  }
  Kick(pair);
  Flush(pair);
}

void Card::Kick(QueuePair& pair) {
  if (pair.running) {
    pair.run_again = true;
    return;
  }
  pair.running = true;
  while (true) {
    while (Step(pair)) {
    }
    const std::shared_ptr<QueuePair> peer = pair.peer.lock();
    if (pair.sender_waits && !pair.receives.empty() && peer != nullptr) {
      pair.sender_waits = false;
      Kick(*peer);
    } else if (pair.run_again) {
      pair.run_again = false;
    } else {
      break;
    }
  }
  pair.running = false;
}

void Card::Flush(QueuePair& pair) {
  pair.state = QueuePairState::kError;
  Kick(pair);
}

void Card::Land(const Landing& landing) {
  const std::shared_ptr<QueuePair> pair = landing.pair.lock();
  if (pair == nullptr) {
    return;
  }
  for (Request& request : pair->slots) {
    if (request.serial == landing.serial && request.stage == Request::Stage::kReading) {
      request.stage = Request::Stage::kLanding;
      Kick(*pair);
      return;
    }
  }
}

// One has room above the depth. A receive has no turn, nor has an initiator request before the connection.
void Card::Refuse(QueuePair& pair, Request request) {
  const bool receive = request.kind == RequestKind::kReceive;
  std::deque<Request>& queue = receive ? pair.receives : pair.slots;
  const bool at_once = pair.state == QueuePairState::kInit || (receive && pair.state != QueuePairState::kError);
  const bool has_room = queue.size() <= (receive ? pair.limits.receive_depth : pair.limits.initiator_depth);
  if (has_room) {
    request.status = at_once ? kRefused : NtStatus::kSuccess;
    request.serial = receive ? 0 : pair.next_serial++;
    queue.push_back(std::move(request));
  }
  if (at_once && (has_room || receive)) {
    Flush(pair);
  }
}

bool Card::Step(QueuePair& pair) {
  if (pair.state == QueuePairState::kError) {
    return FlushQueues(pair);
  }
  Request* const request = NextToBegin(pair);
  if (request == nullptr) {
    return false;
  }
  if (!request->refused.none()) {
    Settle(pair, *request, kRefused);
    return true;
  }
  const std::optional<NtStatus> status = Begin(pair, *request);
  if (!status.has_value()) {
    return false;
  }
  const std::shared_ptr<QueuePair> peer = pair.peer.lock();
  if (*status == NtStatus::kIoTimeout && peer != nullptr && peer->state == QueuePairState::kError) {
    LoseConnection(pair, *peer, /*fatal=*/false);
  }
  if (request->stage != Request::Stage::kReading) {
    Settle(pair, *request, *status);
  }
  return true;
}

// Nullopt if the request has to wait.
std::optional<NtStatus> Card::Begin(QueuePair& pair, Request& request) {
  const bool is_slow = slow_reads_ && request.kind == RequestKind::kRead && request.stage == Request::Stage::kQueued;
  if (!is_slow) {
    return Execute(pair, request);
  }
  const Door door = Knock(pair);
  if (door == Door::kOpen) {
    request.stage = Request::Stage::kReading;
    landings.push_back({.pair = pair.weak_from_this(), .serial = request.serial});
    return NtStatus::kSuccess;
  }
  return door == Door::kClosed ? std::optional(NtStatus::kIoTimeout) : std::nullopt;
}

// Returns a read whose bytes have landed, else the oldest request that has not begun.
Request* Card::NextToBegin(QueuePair& pair) {
  uint32_t reading = 0;
  for (Request& request : pair.slots) {
    if (request.stage == Request::Stage::kLanding) {
      return &request;
    }
    if (request.stage == Request::Stage::kQueued) {
      const bool waits = pair.disconnecting || (request.fence && reading > 0) ||
                         (!request.refused.none() && &request != &pair.slots.front()) ||
                         (request.kind == RequestKind::kRead && reading >= kMaxReadsUnderWay);
      return waits ? nullptr : &request;
    }
    reading += request.stage == Request::Stage::kReading ? 1 : 0;
  }
  return nullptr;
}

// Completions come in posting order. Requests behind a failed one are flushed, even one that was executed while an
// earlier read was under way.
void Card::Settle(QueuePair& pair, Request& request, NtStatus status) {
  request.stage = Request::Stage::kDone;
  request.status = status;
  if (status != NtStatus::kSuccess) {
    pair.state = QueuePairState::kError;
  }
  bool failed = false;
  while (!failed && !pair.slots.empty() && pair.slots.front().stage == Request::Stage::kDone) {
    const Request done = std::move(pair.slots.front());
    pair.slots.pop_front();
    failed = done.status != NtStatus::kSuccess;
    Report(pair, done);
  }
}

void Card::Report(QueuePair& pair, const Request& request) {
  if (request.status != NtStatus::kSuccess || !request.silent) {
    Owe(pair, provider::WorkQueue::kInitiator,
        {.request_context = request.context, .type = TypeOf(request.kind), .status = request.status}, request.refused);
  }
}

bool Card::FlushQueues(QueuePair& pair) {
  const bool had_some = !pair.slots.empty() || !pair.receives.empty();
  while (!pair.slots.empty()) {
    Request request = std::move(pair.slots.front());
    pair.slots.pop_front();
    request.status = WhenFlushed(request);
    Report(pair, request);
  }
  while (!pair.receives.empty()) {
    const Request receive = std::move(pair.receives.front());
    pair.receives.pop_front();
    Owe(pair, provider::WorkQueue::kReceive,
        {.request_context = receive.context, .type = OperationType::kReceive, .status = WhenFlushed(receive)},
        receive.refused);
  }
  if (!pair.told_peers) {
    pair.told_peers = true;
    auto others = std::move(pair.early_visitors);
    pair.early_visitors.clear();
    if (const std::shared_ptr<QueuePair> peer = pair.peer.lock(); peer != nullptr) {
      others[peer->address] = peer;
    }
    for (const auto& [address, weak] : others) {
      const std::shared_ptr<QueuePair> other = weak.lock();
      if (other != nullptr && other.get() != &pair) {
        LoseConnection(*other, pair, /*fatal=*/false);
      }
    }
  }
  return had_some;
}

void Card::LoseConnection(QueuePair& pair, const QueuePair& lost, bool fatal) {
  pair.early_visitors.erase(lost.address);
  if (pair.state != QueuePairState::kReadyToSend || pair.peer_number != lost.number) {
    return;
  }
  // A queue pair connected to itself gets no event: its own requests report the failure.
  pair.peer_gone_due = pair.peer_gone_due || (!pair.peer_lost && lost.number != pair.number);
  pair.peer_lost = true;
  if (fatal) {
    pair.state = QueuePairState::kError;
  }
  Kick(pair);
}

Card::Door Card::Knock(QueuePair& pair) {
  const std::shared_ptr<QueuePair> host = pair.peer.lock();
  if (host == nullptr || pair.peer_lost) {
    return Door::kClosed;
  }
  if (host->state == QueuePairState::kInit) {
    return Door::kNotYet;
  }
  return host->state == QueuePairState::kError || host->peer_number != pair.number ? Door::kClosed : Door::kOpen;
}

std::optional<NtStatus> Card::Execute(QueuePair& pair, Request& request) {
  const auto status_of = [](bool done) { return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest; };
  switch (request.kind) {
    case RequestKind::kFastRegister:
      return status_of(FastRegister(pair, request));
    case RequestKind::kInvalidate:
      return status_of(request.key->Invalidate());
    case RequestKind::kBind:
      return status_of(Bind(pair, request));
    case RequestKind::kReceive:
      return NtStatus::kInternalError;
    default:
      break;
  }
  const Door door = Knock(pair);
  if (door != Door::kOpen) {
    return door == Door::kClosed ? std::optional(NtStatus::kIoTimeout) : std::nullopt;
  }
  const std::shared_ptr<QueuePair> host = pair.peer.lock();
  if (request.kind == RequestKind::kSend) {
    return Send(pair, *host, request);
  }
  return request.kind == RequestKind::kWrite ? Write(pair, *host, request) : Read(pair, *host, request);
}

std::optional<NtStatus> Card::Send(QueuePair& pair, QueuePair& host, Request& request) {
  Pieces source;
  if (!PinPayload(pair, request, Access::kLocalRead, source)) {
    return NtStatus::kAccessViolation;
  }
  if (host.receives.empty()) {
    host.sender_waits = true;
    return std::nullopt;
  }
  const Request receive = std::move(host.receives.front());
  host.receives.pop_front();
  provider::Completion completion{.request_context = receive.context,
                                  .type = OperationType::kReceive,
                                  .status = Receive(host, request, receive),
                                  .bytes = static_cast<uint32_t>(request.size()),
                                  .solicited = request.solicit};
  if (completion.status == NtStatus::kSuccess) {
    Pieces sink;
    PinPayload(host, receive, Access::kLocalWrite, sink);
    CopyBytes(request, source, sink, request.size());
    if (request.invalidate.has_value()) {
      const std::shared_ptr<Target> target = host.nic().Find(*request.invalidate);
      const std::shared_ptr<Key> key = target != nullptr ? target->owner.lock() : nullptr;
      const bool is_through = target != nullptr && (target->region == nullptr || target->through == host.number);
      if (key != nullptr && is_through && key->domain == host.domain->number && key->Invalidate()) {
        completion.type = OperationType::kReceiveAndInvalidate;
        completion.invalidated = *request.invalidate;
      } else {
        completion.status = NtStatus::kInvalidDeviceRequest;
      }
    }
  }
  Owe(host, provider::WorkQueue::kReceive, completion);
  if (completion.status == NtStatus::kSuccess) {
    return NtStatus::kSuccess;
  }
  LoseConnection(host, pair, /*fatal=*/true);
  return NtStatus::kRemoteResources;
}

// The receive completion's status, apart from an invalidation.
NtStatus Card::Receive(QueuePair& host, const Request& send, const Request& receive) {
  if (send.size() > receive.size()) {
    return NtStatus::kBufferOverflow;
  }
  Pieces sink;
  return PinPayload(host, receive, Access::kLocalWrite, sink) ? NtStatus::kSuccess : NtStatus::kAccessViolation;
}

NtStatus Card::Write(QueuePair& pair, QueuePair& host, const Request& request) {
  const uint64_t size = request.size();
  Pieces source;
  Pieces sink;
  if (!PinPayload(pair, request, Access::kLocalRead, source)) {
    return NtStatus::kAccessViolation;
  }
  if (size == 0) {
    return NtStatus::kSuccess;
  }
  const std::shared_ptr<Target> target = host.nic().Find(request.remote_token);
  if (target == nullptr ||
      !target->Pin(host.domain->number, host.number, Access::kRemoteWrite, request.remote_address, size, sink)) {
    LoseConnection(host, pair, /*fatal=*/true);
    return NtStatus::kAccessViolation;
  }
  CopyBytes(request, source, sink, size);
  return NtStatus::kSuccess;
}

NtStatus Card::Read(QueuePair& pair, QueuePair& host, const Request& request) {
  const uint64_t size = request.size();
  Pieces source;
  Pieces sink;
  if (!PinPayload(pair, request, Access::kReadSink, sink)) {
    return NtStatus::kAccessViolation;
  }
  if (size > 0) {
    const std::shared_ptr<Target> target = host.nic().Find(request.remote_token);
    if (target == nullptr ||
        !target->Pin(host.domain->number, host.number, Access::kRemoteRead, request.remote_address, size, source)) {
      LoseConnection(host, pair, /*fatal=*/true);
      return NtStatus::kAccessViolation;
    }
    CopyPieces(source, sink, size);
  }
  if (!request.local_invalidate || request.entries.empty() || !request.entries.front().host.empty()) {
    return NtStatus::kSuccess;
  }
  const std::shared_ptr<Target> invalidated = pair.nic().Find(request.entries.front().token);
  const std::shared_ptr<Key> key = invalidated != nullptr ? invalidated->owner.lock() : nullptr;
  const bool done = key != nullptr && key->domain == pair.domain->number && key->Invalidate();
  return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

bool Card::FastRegister(QueuePair& pair, Request& request) {
  const auto target = std::make_shared<Target>(Target{.domain = request.key->domain,
                                                      .base = VirtualAddress{request.base},
                                                      .length = request.length,
                                                      .rights = pair.nic().Resolve(request.rights),
                                                      .local = request.key->local,
                                                      .remote = request.token,
                                                      .pieces = request.pieces,
                                                      .owner = request.key});
  if (!request.key->Activate(target)) {
    return false;
  }
  // The registration owns the pages from here on.
  target->backing.swap(request.backing);
  return true;
}

bool Card::Bind(QueuePair& pair, Request& request) {
  const auto target = std::make_shared<Target>(Target{.domain = request.key->domain,
                                                      .base = VirtualAddress{request.base},
                                                      .length = request.length,
                                                      .rights = request.rights,
                                                      .remote = request.token,
                                                      .region = request.bound_to,
                                                      .through = pair.number,
                                                      .owner = request.key});
  if (!request.bound_to->alive || !request.key->Activate(target)) {
    return false;
  }
  // The binding holds the region from here on.
  target->hold.swap(request.hold);
  return true;
}

}  // namespace rnicd::simulation
