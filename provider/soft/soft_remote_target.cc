// What the peer of another daemon asks of a queue pair.

#include <utility>

#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_execute.h"
#include "provider/soft/soft_remote.h"

namespace rnicd::provider {

void SoftRemote::OnRequest(uint64_t link, const SoftRequest& request) {
  QueuePairEngine& engine = self_.engine();
  SoftReply reply{.to = request.from, .from = request.to, .serial = request.serial};
  const SoftRemotePair peer{.link = link, .number = request.from};
  if (engine.EnterPeer(peer.ToAddress())) {
    reply.result =
        request.kind == SoftRequest::Kind::kSend ? ExecuteSend(request) : ExecuteAccess(request, reply.bytes);
    engine.Release();
  } else if (engine.state() == QueuePairState::kInit) {
    // The peer is connected a moment earlier than it says so.
    MutexLock lock(mutex_);
    early_ = {.peer = peer, .serial = request.serial};
    reply.result = Result::kNotReady;
  }
  self_.nic().fabric().traffic().SendReply(link, reply);
  // As on a card, an access that is not permitted and a receive that fails end the connection on both sides.
  if (reply.result == Result::kRefused || reply.result == Result::kReceiveFailed) {
    engine.LosePeer();
    engine.Fail();
    engine.Run();
  }
}

// Each piece pins all that is left, so that a failed check of the first has moved nothing.
SoftReply::Result SoftRemote::ExecuteAccess(const SoftRequest& request, std::string& bytes) {
  if (request.total == 0) {
    return Result::kDone;  // Like a card, does not check the token of an empty access.
  }
  const bool reads = request.kind == SoftRequest::Kind::kRead;
  const uint64_t piece = PieceOf(request.total, request.offset);
  SoftPins memory;
  if (!memory.Add(self_.nic().keys().Find(RemoteToken{request.token}), self_.accessor(),
                  reads ? SoftAccess::kRemoteRead : SoftAccess::kRemoteWrite, {request.address + request.offset},
                  request.total - request.offset)) {
    return Result::kRefused;
  }
  if (reads) {
    bytes.resize(piece);
    CopyInOrder(memory.pieces(), PiecesOf(bytes), piece);
  } else {
    CopyInOrder(PiecesOf(request.bytes), memory.pieces(), piece);
  }
  return Result::kDone;
}

SoftReply::Result SoftRemote::ExecuteSend(const SoftRequest& request) {
  std::optional<Completion> received;
  uint64_t receive_serial = 0;
  {
    MutexLock lock(arriving_mutex_);
    const bool is_new = request.offset == 0 && arriving_.receive == nullptr;
    const bool follows = arriving_.receive != nullptr && request.offset != 0 && request.offset == arriving_.done &&
                         request.total == arriving_.total;
    if (failed_ || !(is_new || follows)) {
      return Result::kGone;
    }
    if (is_new && !TakeReceive(request)) {
      return Result::kNotReady;
    }
    received = Receive(request);
    if (!received.has_value()) {
      return Result::kDone;
    }
    receive_serial = std::exchange(arriving_, {}).receive->serial;
  }
  QueuePairEngine& engine = self_.engine();
  if (received->status == NtStatus::kSuccess && request.invalidate.has_value()) {
    const RemoteToken token{*request.invalidate};
    engine.Invalidated(token, InvalidateAtReceiver(self_, token), *received);
  }
  engine.ReceiveEnded(receive_serial, *received);
  return received->status == NtStatus::kSuccess ? Result::kDone : Result::kReceiveFailed;
}

// A receive that is posted meanwhile is either seen here or sees that somebody waits.
bool SoftRemote::TakeReceive(const SoftRequest& request) {
  QueuePairEngine& engine = self_.engine();
  EngineRequest* receive = engine.TakeReceive();
  if (receive == nullptr) {
    waiting_serial_ = request.serial;
    receive = engine.TakeReceive();
    if (receive == nullptr) {
      return false;
    }
    waiting_serial_ = 0;
  }
  arriving_ = {.receive = receive, .total = request.total};
  return true;
}

std::optional<Completion> SoftRemote::Receive(const SoftRequest& request) {
  WorkRequest& receive = arriving_.receive->work;
  Completion received{.request_context = receive.request_context,
                      .type = OperationType::kReceive,
                      .bytes = static_cast<uint32_t>(request.total),
                      .solicited = request.solicit};
  if (request.total > LengthOf(receive)) {
    received.status = NtStatus::kBufferOverflow;
    return received;
  }
  SoftPins sink;
  if (!PinPayload(self_, receive, SoftAccess::kLocalWrite, sink)) {
    received.status = NtStatus::kAccessViolation;
    return received;
  }
  const uint64_t piece = request.bytes.size();
  CopyInOrder(PiecesOf(request.bytes), Slice(sink.pieces(), request.offset, piece), piece);
  arriving_.done += piece;
  return arriving_.done == arriving_.total ? std::optional(received) : std::nullopt;
}

void SoftRemote::OnReceivePosted() {
  if (const uint64_t serial = waiting_serial_.exchange(0); serial != 0) {
    SendLater(Result::kAgain, serial);
  }
}

// After what the worker does now: it may be about to answer the same request.
void SoftRemote::SendLater(Result result, uint64_t serial) {
  self_.RunLater([this, weak = self_.engine().weak_from_this(), result, serial] {
    if (const std::shared_ptr<QueuePairEngine> engine = weak.lock(); engine != nullptr) {
      SendToPeer(result, serial);
    }
  });
}

void SoftRemote::Fail() {
  Arriving arriving;
  {
    MutexLock lock(arriving_mutex_);
    failed_ = true;
    arriving = std::exchange(arriving_, {});
  }
  if (arriving.receive != nullptr) {
    self_.engine().ReceiveEnded(arriving.receive->serial, {.request_context = arriving.receive->work.request_context,
                                                           .type = OperationType::kReceive,
                                                           .status = NtStatus::kCancelled});
  }
  if (connected_) {
    SendToPeer(Result::kGone, 0);
  }
}

void SoftRemote::SendToPeer(Result result, uint64_t serial) {
  SoftRemotePair peer;
  {
    MutexLock lock(mutex_);
    peer = peer_;
  }
  self_.nic().fabric().traffic().SendReply(
      peer.link, {.result = result, .to = peer.number, .from = self_.accessor().queue_pair, .serial = serial});
}

}  // namespace rnicd::provider
