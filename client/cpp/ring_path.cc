#include "client/cpp/ring_path.h"

#include <string>

#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "ring/chain.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

using ring::Opcode;

// As the error of a call: what is known of the reason comes from its row.
absl::Status FailureOf(const RingReply& reply) {
  const ring::Outcome& outcome = reply.outcome;
  if (outcome.reason == 0) {
    return TransportFailure(absl::StatusCode::kInternal, "an outcome of the ring has a status without a reason");
  }
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(outcome.reason));
  detail.set_field(reply.field);
  detail.set_limit(outcome.base_or_limit);
  detail.set_used(outcome.length_or_used);
  detail.set_requested(outcome.requested);
  return wire::StatusFromDetail(detail, absl::StatusCode::kUnknown);
}

bool Succeeded(const RingReply& reply) { return reply.outcome.status == 0 && reply.outcome.reason == 0; }

// Refusals of a single request name it; any other refused the whole chain.
bool IsOfOneRequest(const RingReply& reply) {
  return reply.outcome.posted != 0 || reply.field.starts_with("requests[");
}

absl::StatusOr<PostOutcome> PostOutcomeOf(const RingReply& reply) {
  PostOutcome outcome{.posted = reply.outcome.posted};
  if (!Succeeded(reply)) {
    outcome.failure = FailureOf(reply);
    if (!IsOfOneRequest(reply)) {
      return outcome.failure;
    }
  }
  for (uint32_t index = 0; index < reply.tokens.size(); ++index) {
    if (reply.tokens[index] != 0) {
      outcome.issued_tokens.push_back({.request_index = index, .remote_token = RemoteToken{reply.tokens[index]}});
    }
  }
  return outcome;
}

absl::Status StatusOf(const absl::StatusOr<RingReply>& reply) {
  RNICD_RETURN_IF_ERROR(reply.status());
  return Succeeded(*reply) ? absl::OkStatus() : FailureOf(*reply);
}

// Bytes of the chain in the payload area; nothing for a chain that only a call can carry, or refuse as a call does.
std::optional<size_t> EncodedBytesOf(std::span<const WorkRequest> chain) {
  if (chain.empty() || chain.size() > ring::kChainMax) {
    return std::nullopt;
  }
  size_t sum = 0;
  for (const WorkRequest& request : chain) {
    const absl::StatusOr<size_t> bytes = ring::EncodedBytes(request);
    if (!bytes.ok()) {
      return std::nullopt;
    }
    sum += *bytes;
  }
  return sum;
}

RingRequest WithoutPayload(Opcode opcode, uint64_t object) { return {.entry = {.opcode = opcode, .object = object}}; }

void NoPayload(std::byte*) {}

}  // namespace

std::optional<absl::StatusOr<PostOutcome>> RingPath::Post(QueuePairId pair, std::span<const WorkRequest> chain) {
  const std::optional<size_t> bytes = EncodedBytesOf(chain);
  if (!bytes.has_value()) {
    return std::nullopt;
  }
  const auto count = static_cast<uint32_t>(chain.size());
  const RingRequest request{.entry = {.opcode = Opcode::kPost, .count = count, .object = pair.value},
                            .payload_bytes = *bytes,
                            .tokens = count};
  const Reply reply = Execute(request, [chain](std::byte* to) {
    for (const WorkRequest& each : chain) {
      to += ring::Encode(each, to);
    }
  });
  if (!reply.has_value()) {
    return std::nullopt;
  }
  return reply->ok() ? PostOutcomeOf(**reply) : reply->status();
}

std::optional<absl::StatusOr<Registration>> RingPath::Register(MemoryRegionId region, std::span<const MdlEntry> chain,
                                                               uint64_t length, uint32_t flags) {
  const RingRequest request{.entry = {.opcode = Opcode::kRegisterMr,
                                      .count = static_cast<uint32_t>(chain.size()),
                                      .object = region.value,
                                      .length = length,
                                      .argument = flags},
                            .payload_bytes = chain.size() * ring::kMdlBytes};
  const Reply reply = Execute(request, [chain](std::byte* to) {
    for (const MdlEntry& entry : chain) {
      ring::Encode(entry, to);
      to += ring::kMdlBytes;
    }
  });
  if (!reply.has_value()) {
    return std::nullopt;
  }
  if (const absl::Status status = StatusOf(*reply); !status.ok()) {
    return status;
  }
  const ring::Outcome& outcome = (*reply)->outcome;
  return Registration{.base_address = VirtualAddress{outcome.base_or_limit},
                      .length = outcome.length_or_used,
                      .local_token = LocalToken{outcome.local_token},
                      .remote_token = RemoteToken{outcome.remote_token}};
}

std::optional<absl::Status> RingPath::Deregister(MemoryRegionId region) {
  const Reply reply = Execute(WithoutPayload(Opcode::kDeregisterMr, region.value), NoPayload);
  return reply.has_value() ? std::optional(StatusOf(*reply)) : std::nullopt;
}

std::optional<absl::StatusOr<RemoteToken>> RingPath::GetRemoteToken(MemoryRegionId region) {
  const Reply reply = Execute(WithoutPayload(Opcode::kGetRemoteToken, region.value), NoPayload);
  if (!reply.has_value()) {
    return std::nullopt;
  }
  if (const absl::Status status = StatusOf(*reply); !status.ok()) {
    return status;
  }
  return RemoteToken{(*reply)->outcome.remote_token};
}

std::optional<absl::Status> RingPath::Arm(CompletionQueueId queue, CqNotifyType type) {
  RingRequest request = WithoutPayload(Opcode::kArmCq, queue.value);
  request.entry.argument = static_cast<uint32_t>(type);
  const Reply reply = Execute(request, NoPayload);
  return reply.has_value() ? std::optional(StatusOf(*reply)) : std::nullopt;
}

RingPath::Reply RingPath::Execute(const RingRequest& request, absl::FunctionRef<void(std::byte*)> encode) {
  const std::optional<absl::StatusOr<RingChannel*>> channel = Channel();
  if (!channel.has_value()) {
    return std::nullopt;
  }
  RNICD_RETURN_IF_ERROR(channel->status());
  Reply reply = (**channel)->Execute(request, encode);
  if (!reply.has_value() && data_path_ == DataPath::kRings) {
    if (const absl::Status ended = (**channel)->ended(); !ended.ok()) {
      return ended;
    }
  }
  return reply;
}

std::optional<absl::StatusOr<RingChannel*>> RingPath::Channel() {
  if (RingChannel* const opened = opened_.load(std::memory_order_acquire); opened != nullptr) {
    return opened;
  }
  if (data_path_ == DataPath::kCalls || refused_.load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  absl::StatusOr<RingChannel*> opened = OpenOnce();
  if (opened.ok() || data_path_ == DataPath::kRings) {
    return opened;
  }
  refused_.store(true, std::memory_order_relaxed);
  return std::nullopt;
}

absl::StatusOr<RingChannel*> RingPath::OpenOnce() {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(failure_);
  if (channel_ == nullptr) {
    absl::StatusOr<std::unique_ptr<RingChannel>> channel = open_();
    if (!channel.ok()) {
      failure_ = channel.status();
      return failure_;
    }
    channel_ = *std::move(channel);
    opened_.store(channel_.get(), std::memory_order_release);
    // The session may have ended meanwhile.
    MutexLock end_lock(end_mutex_);
    if (!ended_.ok()) {
      channel_->End(ended_);
    }
  }
  return channel_.get();
}

void RingPath::End(const absl::Status& why) {
  MutexLock lock(end_mutex_);
  if (ended_.ok()) {
    ended_ = why;
  }
  if (RingChannel* const opened = opened_.load(std::memory_order_acquire); opened != nullptr) {
    opened->End(why);
  }
}

uint32_t RingPath::daemon_cpu() const {
  const RingChannel* const opened = opened_.load(std::memory_order_acquire);
  return opened == nullptr ? 0 : opened->daemon_cpu();
}

}  // namespace rnicd::inline client
