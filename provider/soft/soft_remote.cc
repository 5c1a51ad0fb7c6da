// The own side of a queue pair whose peer belongs to another daemon. soft_remote_target.cc has the peer's.

#include "provider/soft/soft_remote.h"

#include <utility>

#include "base/status.h"
#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_execute.h"

namespace rnicd::provider {
namespace {

constexpr CardOutcome kPeerLost = {.status = NtStatus::kIoTimeout, .peer_lost = true};

// What `work` asks, without its bytes.
SoftRequest RequestOf(const WorkRequest& work) {
  SoftRequest request{.total = LengthOf(work)};
  if (const auto* const send = std::get_if<SendWork>(&work.work)) {
    request.solicit = send->solicit;
    if (send->invalidate.has_value()) {
      request.invalidate = send->invalidate->value;
    }
  } else if (const auto* const write = std::get_if<WriteWork>(&work.work)) {
    request.kind = SoftRequest::Kind::kWrite;
    request.address = write->remote_address.value;
    request.token = write->remote_token.value;
  } else if (const auto* const read = std::get_if<ReadWork>(&work.work)) {
    request.kind = SoftRequest::Kind::kRead;
    request.address = read->remote_address.value;
    request.token = read->remote_token.value;
  }
  return request;
}

}  // namespace

absl::Status SoftRemote::Connect(const SoftRemotePair& peer) {
  if (self_.nic().fabric().traffic().network() == nullptr) {
    return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
  }
  uint64_t early = 0;
  {
    MutexLock lock(mutex_);
    peer_ = peer;
    early = early_.peer == peer ? early_.serial : 0;
  }
  connected_ = true;
  if (early != 0) {
    SendLater(Result::kAgain, early);
  }
  return absl::OkStatus();
}

BeginResult SoftRemote::Begin(EngineRequest& request, EngineTurn& turn) {
  if (!turn.resumed) {
    done_ = 0;
    return SendPiece(request);
  }
  const std::optional<SoftReply> reply = TakeReply();
  if (!reply.has_value()) {
    return BeginResult::Done(NtStatus::kCancelled);  // A disconnect does not wait for the peer.
  }
  const std::optional<CardOutcome> outcome = Conclude(request, turn, *reply);
  return outcome.has_value() ? BeginResult::Done(*outcome) : SendPiece(request);
}

std::optional<SoftReply> SoftRemote::TakeReply() {
  MutexLock lock(mutex_);
  serial_ = 0;
  return std::exchange(reply_, std::nullopt);
}

std::optional<CardOutcome> SoftRemote::Conclude(EngineRequest& request, EngineTurn& turn, const SoftReply& reply) {
  switch (reply.result) {
    case Result::kAgain:
      done_ = 0;
      return std::nullopt;
    case Result::kRefused:
      return CardOutcome{.status = NtStatus::kAccessViolation, .at_peer = true};
    case Result::kReceiveFailed:
      return CardOutcome{.status = NtStatus::kRemoteResources, .at_peer = true};
    case Result::kNotReady:
    case Result::kGone:
      return kPeerLost;
    case Result::kDone:
      break;
  }
  const uint64_t total = LengthOf(request.work);
  const uint64_t piece = PieceOf(total, done_);
  if (reply.bytes.size() != (request.IsRead() ? piece : 0)) {
    return kPeerLost;  // It is no soft card.
  }
  const NtStatus status = request.IsRead() ? Land(request, reply) : NtStatus::kSuccess;
  done_ += piece;
  turn.moved += piece;
  if (status != NtStatus::kSuccess) {
    return CardOutcome{.status = status};
  }
  if (done_ < total) {
    return std::nullopt;
  }
  return CardOutcome{.status = InvalidateSink(self_, request.work)};
}

NtStatus SoftRemote::Land(EngineRequest& request, const SoftReply& reply) {
  SoftPins sink;
  if (!PinPayload(self_, request.work, SoftAccess::kReadSink, sink)) {
    return NtStatus::kAccessViolation;
  }
  CopyInOrder(PiecesOf(reply.bytes), Slice(sink.pieces(), done_, reply.bytes.size()), reply.bytes.size());
  return NtStatus::kSuccess;
}

BeginResult SoftRemote::SendPiece(EngineRequest& request) {
  SoftRequest piece = RequestOf(request.work);
  piece.offset = done_;
  {
    SoftPins payload;
    if (!PinPayload(self_, request.work, request.IsRead() ? SoftAccess::kReadSink : SoftAccess::kLocalRead, payload)) {
      return BeginResult::Done(NtStatus::kAccessViolation);
    }
    if (!request.IsRead()) {
      piece.bytes.resize(PieceOf(piece.total, piece.offset));
      CopyInOrder(Slice(payload.pieces(), done_, piece.bytes.size()), PiecesOf(piece.bytes), piece.bytes.size());
    }
  }
  piece.from = self_.accessor().queue_pair;
  piece.serial = request.serial;
  uint64_t link = 0;
  {
    MutexLock lock(mutex_);
    if (peer_lost_) {
      return BeginResult::Done(kPeerLost);
    }
    link = peer_.link;
    piece.to = peer_.number;
    serial_ = request.serial;
    awaits_receive_ = false;
    reply_.reset();
  }
  switch (self_.nic().fabric().traffic().SendRequest(link, piece, self_.engine())) {
    case SoftTraffic::Sent::kYes:
      return BeginResult::Started(/*holds_back=*/true);
    case SoftTraffic::Sent::kFull:
      return BeginResult::Blocked();
    case SoftTraffic::Sent::kLost:
      break;
  }
  return BeginResult::Done(kPeerLost);
}

void SoftRemote::OnReply(uint64_t link, const SoftReply& reply) {
  uint64_t serial = 0;
  {
    MutexLock lock(mutex_);
    if (!connected_ || peer_ != SoftRemotePair{.link = link, .number = reply.from}) {
      return;
    }
    serial = serial_;
    if (reply.serial != 0) {
      const bool is_awaited = reply.serial == serial && !reply_.has_value();
      if (!is_awaited || (reply.result == Result::kAgain) != awaits_receive_) {
        return;
      }
      awaits_receive_ = reply.result == Result::kNotReady;
      if (awaits_receive_) {
        return;
      }
      reply_ = reply;
    }
  }
  if (reply.serial != 0) {
    self_.engine().Resume(serial);
  } else if (reply.result == Result::kGone) {
    LosePeer();
  }
}

void SoftRemote::OnLost(uint64_t link) {
  {
    MutexLock lock(mutex_);
    if (!connected_ || peer_.link != link) {
      return;
    }
  }
  LosePeer();
}

// As a local peer's end: the owner hears of it, and the request under way is not answered any more.
void SoftRemote::LosePeer() {
  uint64_t serial = 0;
  {
    MutexLock lock(mutex_);
    peer_lost_ = true;
    serial = serial_;
    if (serial != 0 && !reply_.has_value()) {
      reply_ = SoftReply{.result = Result::kGone};
    }
  }
  self_.engine().LosePeer();
  self_.engine().Resume(serial);
  self_.engine().Run();  // For one that waits for room.
}

}  // namespace rnicd::provider
