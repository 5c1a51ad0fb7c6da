#include "daemon/rings/entry_runner.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "daemon/core/request/operations.h"
#include "ring/chain.h"

namespace rnicd::rings {
namespace {

using ring::Opcode;
using ring::Outcome;
using ring::Submission;

// Payload that takes as long to copy and read as a request of usual size to execute.
constexpr uint32_t kPayloadBytesPerRequest = 2048;

constexpr std::array<std::byte, ring::kChainMax * sizeof(uint32_t)> kNoTokens{};

// Bytes of the result area that tokens take: a refusal's field is behind them. A chain of an impossible length has
// none.
uint32_t TokenBytes(const Submission& entry) {
  const bool has_tokens = entry.opcode == Opcode::kPost && entry.count <= ring::kChainMax;
  const uint32_t wanted = has_tokens ? entry.count * static_cast<uint32_t>(sizeof(uint32_t)) : 0;
  return std::min(wanted, entry.result_bytes);
}

void SetFailure(const Entry& entry, const absl::Status& status, Outcome* outcome) {
  const Submission& submitted = entry.submitted;
  const ErrorInfo info = ErrorInfoOf(status);
  outcome->status = static_cast<uint32_t>(NtStatusOf(status));
  outcome->reason = static_cast<uint32_t>(info.reason);
  outcome->base_or_limit = info.limit;
  outcome->length_or_used = info.used;
  outcome->requested = info.requested;
  const uint32_t behind = TokenBytes(submitted);
  const size_t room = submitted.result_bytes - behind;
  ring::DaemonEnd& end = entry.ring->end();
  end.WriteResult(submitted.result_offset, std::span(kNoTokens).first(behind));
  const auto field = std::as_bytes(std::span(info.field)).first(std::min(info.field.size(), room));
  end.WriteResult(submitted.result_offset + behind, field);
  outcome->field_bytes = static_cast<uint32_t>(field.size());
}

// Checks without which no outcome can be written.
absl::Status Check(const Entry& entry) {
  const Submission& submitted = entry.submitted;
  if ((submitted.flags != 0 && ring::HasOutcome(submitted)) ||
      !std::ranges::all_of(submitted.reserved, [](uint32_t word) { return word == 0; })) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "reserved");
  }
  if (!entry.ring->end().PayloadExists(submitted.payload_offset, submitted.payload_bytes) ||
      submitted.payload_bytes % ring::kPayloadUnit != 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "payload_offset");
  }
  return absl::OkStatus();
}

// The outcome of an entry that returns nothing.
absl::StatusOr<Outcome> Ended(const absl::Status& status) {
  return status.ok() ? absl::StatusOr<Outcome>(Outcome()) : status;
}

absl::StatusOr<Outcome> GetRemoteToken(const core::SessionGuard& guard, const Submission& submitted) {
  RNICD_ASSIGN_OR_RETURN(const RemoteToken token, guard.regions().GetRemoteToken(MemoryRegionId{submitted.object}));
  return Outcome{.remote_token = token.value};
}

absl::StatusOr<Outcome> ArmCq(const core::SessionGuard& guard, const Submission& submitted) {
  if (submitted.argument > static_cast<uint32_t>(CqNotifyType::kSolicited)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "type");
  }
  return Ended(guard.queues().Arm(CompletionQueueId{submitted.object}, static_cast<CqNotifyType>(submitted.argument)));
}

}  // namespace

uint32_t EntryRunner::RequestsOf(const Submission& submitted) {
  return submitted.opcode == Opcode::kPost ? std::clamp(submitted.count, 1U, ring::kChainMax) : 1;
}

uint32_t EntryRunner::CostOf(const Submission& submitted) {
  return std::max(RequestsOf(submitted),
                  std::min(submitted.payload_bytes, ring::kPayloadBytesMax) / kPayloadBytesPerRequest);
}

void EntryRunner::Run(Entry entry, const core::SessionGuard& guard) {
  if (!entry.ring->end().PayloadExists(entry.submitted.result_offset, entry.submitted.result_bytes)) {
    entry.submitted.result_bytes = 0;
  }
  const absl::StatusOr<Payload> payload = CopyPayload(entry);
  entry.ring->end().Pop(ring::HasOutcome(entry.submitted));
  if (!payload.ok()) {
    return Refuse(entry, guard, payload.status());
  }
  Execute(entry, guard, *payload);
}

absl::StatusOr<EntryRunner::Payload> EntryRunner::CopyPayload(const Entry& entry) {
  RNICD_RETURN_IF_ERROR(Check(entry));
  const size_t words = entry.submitted.payload_bytes / sizeof(uint64_t);
  if (payload_.size() < words) {
    payload_.resize(words);
  }
  entry.ring->end().CopyPayload(entry.submitted.payload_offset, entry.submitted.payload_bytes, payload_);
  return Payload(payload_).first(words);
}

void EntryRunner::Execute(const Entry& entry, const core::SessionGuard& guard, Payload payload) {
  switch (entry.submitted.opcode) {
    case Opcode::kNop:
      return Complete(entry, Outcome());
    case Opcode::kPost:
      return Post(entry, guard, payload);
    case Opcode::kRegisterMr:
      return Register(entry, guard, payload);
    case Opcode::kDeregisterMr:
      return Deregister(entry, guard);
    case Opcode::kGetRemoteToken:
      return Complete(entry, GetRemoteToken(guard, entry.submitted));
    case Opcode::kArmCq:
      return Complete(entry, ArmCq(guard, entry.submitted));
  }
  Complete(entry, MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "opcode"));
}

// As with a call, a refused request does not refuse the entry: the requests posted before it are executed.
void EntryRunner::Post(const Entry& entry, const core::SessionGuard& guard, Payload payload) {
  const Submission& submitted = entry.submitted;
  const bool has_outcome = ring::HasOutcome(submitted);
  if (const absl::Status decoded = ring::DecodeChain(payload, submitted.count, &chain_); !decoded.ok()) {
    return Refuse(entry, guard, decoded);
  }
  const absl::StatusOr<PostOutcome> posted = guard.pairs().Post(
      QueuePairId{submitted.object}, chain_, has_outcome ? core::Refusals::kInOutcome : core::Refusals::kAsCompletions);
  if (!posted.ok()) {
    return Complete(entry, posted.status());
  }
  Complete(entry, has_outcome ? OutcomeOf(entry, *posted) : Outcome());
}

Outcome EntryRunner::OutcomeOf(const Entry& entry, const PostOutcome& posted) {
  const Submission& submitted = entry.submitted;
  Outcome outcome{.posted = posted.posted};
  if (!posted.failure.ok()) {
    SetFailure(entry, posted.failure, &outcome);
  }
  const uint32_t bytes = TokenBytes(submitted);
  if (bytes != 0) {
    tokens_.assign(submitted.count, 0);
    for (const IssuedToken& issued : posted.issued_tokens) {
      tokens_[issued.request_index] = issued.remote_token.value;
    }
    entry.ring->end().WriteResult(submitted.result_offset, std::as_bytes(std::span(tokens_)).first(bytes));
  }
  return outcome;
}

void EntryRunner::Register(const Entry& entry, const core::SessionGuard& guard, Payload payload) {
  const Submission& submitted = entry.submitted;
  if (const absl::Status decoded = ring::DecodeMdlChain(payload, submitted.count, &mdl_chain_); !decoded.ok()) {
    Complete(entry, decoded);
    return;
  }
  const core::Done<Registration> done = [this, entry](const absl::StatusOr<Registration>& registered) {
    if (!registered.ok()) {
      return Complete(entry, registered.status());
    }
    Complete(entry, Outcome{.local_token = registered->local_token.value,
                            .remote_token = registered->remote_token.value,
                            .base_or_limit = registered->base_address.value,
                            .length_or_used = registered->length});
  };
  const core::RegisterArguments arguments{.region = MemoryRegionId{submitted.object},
                                          .chain = mdl_chain_,
                                          .length = submitted.length,
                                          .flags = submitted.argument};
  core::FinishUnlessPending(guard.regions().Register(arguments, {}, done), done);
}

void EntryRunner::Deregister(const Entry& entry, const core::SessionGuard& guard) {
  const core::Done<> done = [this, entry](const absl::Status& status) { Complete(entry, Ended(status)); };
  core::FinishUnlessPending(guard.regions().Deregister(MemoryRegionId{entry.submitted.object}, {}, done), done);
}

void EntryRunner::Refuse(const Entry& entry, const core::SessionGuard& guard, const absl::Status& why) {
  Complete(entry, why);
  if (!ring::HasOutcome(entry.submitted)) {
    (void)guard.pairs().Flush(QueuePairId{entry.submitted.object});  // A queue pair that is gone reports nothing.
  }
}

void EntryRunner::Complete(const Entry& entry, const absl::StatusOr<Outcome>& ended) {
  const Submission& submitted = entry.submitted;
  const absl::Status& status = ended.status();
  Outcome outcome = status.ok() ? *ended : Outcome();
  outcome.user_data = submitted.user_data;
  outcome.opcode = submitted.opcode;
  if (!status.ok()) {
    SetFailure(entry, status, &outcome);
    refused_.fetch_add(1, std::memory_order_relaxed);
  }
  const core::Operation* const operation = core::OperationOf(submitted.opcode);
  const bool is_decision = operation != nullptr && operation->audit == core::Audit::kDecision;
  if (!status.ok() || (is_decision && entry.session->ReportsSuccesses())) {
    const std::string_view name = operation == nullptr ? "ring.nop" : operation->name;
    const std::string kind(operation == nullptr ? "object" : operation->object);
    entry.session->ReportDecision(name, kind + "=" + std::to_string(submitted.object), status, "ring");
  }
  if (ring::HasOutcome(submitted)) {
    entry.ring->Complete(outcome);
  }
}

}  // namespace rnicd::rings
