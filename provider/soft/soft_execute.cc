#include "provider/soft/soft_execute.h"

#include "provider/engine/invalidatable.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

using Result = std::optional<NtStatus>;

// Visit of a runner to its peer, for the duration of one request.
class Visit {
 public:
  explicit Visit(const SoftExecution& execution)
      : host_(execution.turn.peer.get()),
        card_(execution.turn.peer_card),
        open_(host_ != nullptr && !execution.turn.peer_lost && host_->EnterPeer(execution.self.engine().address())) {}
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() {
    if (open_) {
      host_->Release();
    }
  }

  bool open() const { return open_; }
  QueuePairEngine& engine() { return *host_; }
  SoftEndpoint& host() { return static_cast<SoftEndpoint&>(*card_); }

 private:
  QueuePairEngine* const host_;
  EngineCard* const card_;
  const bool open_;
};

// Status for the receiver.
NtStatus CopyToReceive(const SoftPins& source, uint64_t length, SoftEndpoint& host, WorkRequest& receive) {
  if (length > LengthOf(receive)) {
    return NtStatus::kBufferOverflow;
  }
  SoftPins sink;
  if (!PinPayload(host, receive, SoftAccess::kLocalWrite, sink)) {
    return NtStatus::kAccessViolation;
  }
  CopyInOrder(source.pieces(), sink.pieces(), length);
  return NtStatus::kSuccess;
}

Result ExecuteSend(SoftExecution& execution, const SendWork& work) {
  Visit visit(execution);
  if (!visit.open()) {
    return NtStatus::kIoTimeout;
  }
  const uint64_t length = LengthOf(execution.request);
  Completion completion{
      .type = OperationType::kReceive, .bytes = static_cast<uint32_t>(length), .solicited = work.solicit};
  uint64_t receive_serial = 0;
  {
    SoftPins source;
    if (!PinPayload(execution.self, execution.request, SoftAccess::kLocalRead, source)) {
      return NtStatus::kAccessViolation;
    }
    EngineRequest* const receive = visit.engine().TakeReceive();
    if (receive == nullptr) {
      return std::nullopt;
    }
    receive_serial = receive->serial;
    completion.request_context = receive->work.request_context;
    completion.status = CopyToReceive(source, length, visit.host(), receive->work);
    execution.turn.moved += length;
  }
  if (completion.status == NtStatus::kSuccess && work.invalidate.has_value()) {
    visit.engine().Invalidated(*work.invalidate, InvalidateAtReceiver(visit.host(), *work.invalidate), completion);
  }
  visit.engine().ReceiveEnded(receive_serial, completion);
  if (completion.status == NtStatus::kSuccess) {
    return NtStatus::kSuccess;
  }
  // A failed receive ends the connection; the sender gets no further details.
  execution.refused_by_peer = true;
  return NtStatus::kRemoteResources;
}

// Outcome of a read or write: allowed, or refused by the memory on this side or on the peer's side.
enum class Access : uint8_t { kAllowed, kRefusedHere, kRefusedThere };

Access CopyWrite(SoftExecution& execution, SoftEndpoint& host, const WriteWork& work) {
  const uint64_t length = LengthOf(execution.request);
  SoftPins source;
  SoftPins sink;
  if (!PinPayload(execution.self, execution.request, SoftAccess::kLocalRead, source)) {
    return Access::kRefusedHere;
  }
  if (length == 0) {
    return Access::kAllowed;  // Like a card, do not check the token of an empty access.
  }
  if (!sink.Add(host.nic().keys().Find(work.remote_token), host.accessor(), SoftAccess::kRemoteWrite,
                work.remote_address, length)) {
    return Access::kRefusedThere;
  }
  CopyInOrder(source.pieces(), sink.pieces(), length);
  execution.turn.moved += length;
  return Access::kAllowed;
}

Access CopyRead(SoftExecution& execution, SoftEndpoint& host, const ReadWork& work) {
  const uint64_t length = LengthOf(execution.request);
  SoftPins source;
  SoftPins sink;
  if (!PinPayload(execution.self, execution.request, SoftAccess::kReadSink, sink)) {
    return Access::kRefusedHere;
  }
  if (length == 0) {
    return Access::kAllowed;
  }
  if (!source.Add(host.nic().keys().Find(work.remote_token), host.accessor(), SoftAccess::kRemoteRead,
                  work.remote_address, length)) {
    return Access::kRefusedThere;
  }
  CopyInOrder(source.pieces(), sink.pieces(), length);
  execution.turn.moved += length;
  return Access::kAllowed;
}

// An access that the peer's memory does not permit ends the connection on both sides, as on a card.
NtStatus Conclude(Access access, SoftExecution& execution) {
  execution.refused_by_peer = access == Access::kRefusedThere;
  return access == Access::kAllowed ? NtStatus::kSuccess : NtStatus::kAccessViolation;
}

Result ExecuteWrite(SoftExecution& execution, const WriteWork& work) {
  Visit visit(execution);
  if (!visit.open()) {
    return NtStatus::kIoTimeout;
  }
  return Conclude(CopyWrite(execution, visit.host(), work), execution);
}

Result ExecuteRead(SoftExecution& execution, const ReadWork& work) {
  Visit visit(execution);
  if (!visit.open()) {
    return NtStatus::kIoTimeout;
  }
  const NtStatus status = Conclude(CopyRead(execution, visit.host(), work), execution);
  return status == NtStatus::kSuccess ? InvalidateSink(execution.self, execution.request) : status;
}

Result StatusOf(bool done) { return done ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest; }

struct Executor {
  SoftExecution& execution;

  Result operator()(const SendWork& work) const { return ExecuteSend(execution, work); }
  Result operator()(const ReceiveWork&) const { return NtStatus::kInternalError; }  // Waits in the other queue.
  Result operator()(const ReadWork& work) const { return ExecuteRead(execution, work); }
  Result operator()(const WriteWork& work) const { return ExecuteWrite(execution, work); }
  Result operator()(FastRegisterWork& work) const {
    return StatusOf(static_cast<SoftFastRegion&>(*work.region).Register(work, execution.token));
  }
  Result operator()(const InvalidateWork& work) const {
    return StatusOf(work.region != nullptr ? static_cast<SoftFastRegion&>(*work.region).Invalidate()
                                           : static_cast<SoftWindow&>(*work.window).Invalidate());
  }
  Result operator()(BindWork& work) const {
    return StatusOf(
        static_cast<SoftWindow&>(*work.window).Bind(work, execution.token, execution.self.accessor().queue_pair));
  }
};

}  // namespace

std::optional<NtStatus> Execute(SoftExecution& execution) {
  return std::visit(Executor{execution}, execution.request.work);
}

NtStatus Reach(const SoftExecution& execution) {
  const Visit visit(execution);
  return visit.open() ? NtStatus::kSuccess : NtStatus::kIoTimeout;
}

bool PinPayload(SoftEndpoint& endpoint, WorkRequest& request, SoftAccess access, SoftPins& pins) {
  if (auto* const data = std::get_if<InlineData>(&request.payload)) {
    pins.AddHost(*data);
    return true;
  }
  for (const ScatterGatherEntry& entry : request.entries()) {
    if (entry.length == 0) {
      continue;
    }
    if (entry.host.data() != nullptr) {
      pins.AddHost(entry.host);
    } else if (!pins.Add(endpoint.nic().keys().Find(entry.token), endpoint.accessor(), access, entry.address,
                         entry.length)) {
      return false;
    }
  }
  return true;
}

bool InvalidateAtReceiver(SoftEndpoint& host, RemoteToken token) {
  const std::shared_ptr<SoftTarget> target = host.nic().keys().Find(token);
  return target != nullptr && target->InvalidateByToken(host.accessor());
}

NtStatus InvalidateSink(SoftEndpoint& self, const WorkRequest& request) {
  const std::optional<LocalToken> token = TokenToInvalidate(request);
  if (!token.has_value()) {
    return NtStatus::kSuccess;
  }
  const std::shared_ptr<SoftTarget> sink = self.nic().keys().Find(*token);
  const bool invalidated = sink != nullptr && sink->InvalidateByToken(self.accessor());
  return invalidated ? NtStatus::kSuccess : NtStatus::kInvalidDeviceRequest;
}

uint64_t LengthOf(const WorkRequest& request) {
  if (const auto* const data = std::get_if<InlineData>(&request.payload)) {
    return data->size();
  }
  uint64_t length = 0;
  for (const ScatterGatherEntry& entry : request.entries()) {
    length += entry.length;
  }
  return length;
}

}  // namespace rnicd::provider
