#include "client/cpp/rings/ring_path.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "ring/chain.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

using ring::Opcode;

// The field of a piece of a chain whose first request is number `first` of the chain.
std::string FieldInChain(const std::string& field, size_t first) {
  constexpr std::string_view kOpening = "requests[";
  const char* const begin = field.data() + kOpening.size();
  const char* const end = field.data() + field.size();
  size_t index = 0;
  if (first == 0 || !field.starts_with(kOpening)) {
    return field;
  }
  const auto [rest, error] = std::from_chars(begin, end, index);
  return error == std::errc() ? std::string(kOpening) + std::to_string(first + index) + std::string(rest, end) : field;
}

// As the error of a call: code and message come from the reason's row.
absl::Status FailureOf(const RingReply& reply, size_t first = 0) {
  const ring::Outcome& outcome = reply.outcome;
  if (outcome.reason == 0) {
    return TransportFailure(absl::StatusCode::kInternal, "an outcome of the ring has a status without a reason");
  }
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(outcome.reason));
  detail.set_field(FieldInChain(reply.field, first));
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

// Adds to `outcome` the reply for the piece whose first request is number outcome.posted of the chain.
absl::StatusOr<PostOutcome> PostOutcomeOf(const RingReply& reply, PostOutcome outcome = {}) {
  const uint32_t first = outcome.posted;
  outcome.posted += reply.outcome.posted;
  if (!Succeeded(reply)) {
    outcome.failure = FailureOf(reply, first);
    if (outcome.posted == 0 && !IsOfOneRequest(reply)) {
      return outcome.failure;
    }
  }
  for (uint32_t index = 0; index < reply.tokens.size(); ++index) {
    if (reply.tokens[index] != 0) {
      outcome.issued_tokens.push_back(
          {.request_index = first + index, .remote_token = RemoteToken{reply.tokens[index]}});
    }
  }
  return outcome;
}

absl::Status StatusOf(const absl::StatusOr<RingReply>& reply) {
  RNICD_RETURN_IF_ERROR(reply.status());
  return Succeeded(*reply) ? absl::OkStatus() : FailureOf(*reply);
}

// A ring request that posts `count` requests, which take `bytes` in the payload area.
RingRequest PostRequestOf(QueuePairId pair, uint16_t flags, size_t count, size_t bytes) {
  const auto requests = static_cast<uint32_t>(count);
  return {.entry = {.opcode = Opcode::kPost, .flags = flags, .count = requests, .object = pair.value},
          .payload_bytes = bytes,
          .tokens = flags == 0 ? requests : 0};
}

struct Piece {
  size_t count = 0;
  size_t bytes = 0;
};

// The chain in pieces that each fit into the payload area; mostly one. Deferred requests stay with the next one.
// Nothing for a chain that must go through a call, also to be refused there.
std::optional<absl::InlinedVector<Piece, 1>> PiecesOf(std::span<const WorkRequest> chain, uint16_t flags, size_t room) {
  if (chain.empty() || chain.size() > ring::kChainMax) {
    return std::nullopt;
  }
  absl::InlinedVector<Piece, 1> pieces(1);
  Piece deferred;
  for (const WorkRequest& request : chain) {
    const absl::StatusOr<size_t> bytes = ring::EncodedBytes(request);
    if (!bytes.ok()) {
      return std::nullopt;
    }
    deferred = {.count = deferred.count + 1, .bytes = deferred.bytes + *bytes};
    if ((request.flags & kOpFlagDefer) != 0 && &request != &chain.back()) {
      continue;
    }
    const auto fits = [&](const Piece& piece) {
      return RingChannel::BytesOf(
                 PostRequestOf({}, flags, piece.count + deferred.count, piece.bytes + deferred.bytes)) <= room;
    };
    if (!fits(pieces.back())) {
      pieces.emplace_back();
      if (!fits(pieces.back())) {
        return std::nullopt;
      }
    }
    pieces.back().count += deferred.count;
    pieces.back().bytes += deferred.bytes;
    deferred = {};
  }
  return pieces;
}

void EncodeChain(std::span<const WorkRequest> chain, std::byte* to) {
  for (const WorkRequest& request : chain) {
    to += ring::Encode(request, to);
  }
}

RingRequest WithoutPayload(Opcode opcode, uint64_t object) { return {.entry = {.opcode = opcode, .object = object}}; }

void NoPayload(std::byte*) {}

}  // namespace

std::optional<absl::StatusOr<PostOutcome>> RingPath::Post(QueuePairId pair, std::span<const WorkRequest> chain) {
  const std::optional<absl::StatusOr<RingChannel*>> channel = Channel();
  if (!channel.has_value()) {
    return std::nullopt;
  }
  if (!channel->ok()) {
    return channel->status();
  }
  const auto pieces = PiecesOf(chain, 0, (**channel)->max_payload());
  if (!pieces.has_value()) {
    return std::nullopt;
  }
  PostOutcome outcome;
  for (const Piece& piece : *pieces) {
    const Reply reply = Execute(PostRequestOf(pair, 0, piece.count, piece.bytes),
                                [part = chain.first(piece.count)](std::byte* to) { EncodeChain(part, to); });
    if (!reply.has_value() && outcome.posted == 0) {
      return std::nullopt;
    }
    if (!reply.has_value()) {
      outcome.failure = TransportFailure(absl::StatusCode::kUnavailable, "the ring has ended");
      break;
    }
    if (!reply->ok()) {
      return reply->status();
    }
    RNICD_ASSIGN_OR_RETURN(outcome, PostOutcomeOf(**reply, std::move(outcome)));
    if (!outcome.failure.ok()) {
      break;
    }
    chain = chain.subspan(piece.count);
  }
  return outcome;
}

std::optional<absl::Status> RingPath::PostWithoutOutcome(QueuePairId pair, std::span<const WorkRequest> chain) {
  const std::optional<absl::StatusOr<RingChannel*>> channel = Channel();
  if (!channel.has_value()) {
    return std::nullopt;
  }
  RNICD_RETURN_IF_ERROR(channel->status());
  const auto pieces = PiecesOf(chain, ring::kFlagNoOutcome, (**channel)->max_payload());
  if (!pieces.has_value()) {
    return std::nullopt;
  }
  for (const Piece& piece : *pieces) {
    const absl::StatusOr<bool> sent =
        (**channel)->Send(PostRequestOf(pair, ring::kFlagNoOutcome, piece.count, piece.bytes),
                          [part = chain.first(piece.count)](std::byte* to) { EncodeChain(part, to); });
    RNICD_RETURN_IF_ERROR(sent.status());
    if (!*sent) {
      return &piece == &pieces->front() ? std::optional<absl::Status>()
                                        : TransportFailure(absl::StatusCode::kUnavailable, "the ring has ended");
    }
    chain = chain.subspan(piece.count);
  }
  return absl::OkStatus();
}

absl::Status RingPath::AwaitPosts(std::chrono::milliseconds wait_max) {
  RingChannel* const channel = opened_.load(std::memory_order_acquire);
  return channel == nullptr ? absl::OkStatus() : channel->AwaitSent(wait_max);
}

std::vector<Completion> RingPath::TakeLost() {
  RingChannel* const channel = opened_.load(std::memory_order_acquire);
  return channel == nullptr ? std::vector<Completion>() : channel->TakeLost();
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
  if (absl::Status status = StatusOf(*reply); !status.ok()) {
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
  if (absl::Status status = StatusOf(*reply); !status.ok()) {
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
  if (data_path_ == DataPath::kAutomatic && opened_.load(std::memory_order_acquire) == nullptr &&
      calls_.fetch_add(1, std::memory_order_relaxed) < kCallsFirst) {
    return std::nullopt;
  }
  const std::optional<absl::StatusOr<RingChannel*>> channel = Channel();
  if (!channel.has_value()) {
    return std::nullopt;
  }
  RNICD_RETURN_IF_ERROR(channel->status());
  Reply reply = (**channel)->Execute(request, encode);
  if (!reply.has_value() && data_path_ == DataPath::kRings) {
    if (absl::Status ended = (**channel)->ended(); !ended.ok()) {
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
