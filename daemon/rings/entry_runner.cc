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

std::string ObjectOf(const core::Operation* operation, const Submission& entry) {
  const std::string kind(operation == nullptr ? "object" : operation->object);
  return kind + "=" + std::to_string(entry.object);
}

Outcome OutcomeOf(const Submission& entry) { return {.user_data = entry.user_data, .opcode = entry.opcode}; }

void SetRegistration(const Registration& registration, Outcome* outcome) {
  outcome->local_token = registration.local_token.value;
  outcome->remote_token = registration.remote_token.value;
  outcome->base_or_limit = registration.base_address.value;
  outcome->length_or_used = registration.length;
}

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

void SetFailure(core::Ring& ring, const Submission& entry, const absl::Status& status, Outcome* outcome) {
  const ErrorInfo info = ErrorInfoOf(status);
  outcome->status = static_cast<uint32_t>(NtStatusOf(status));
  outcome->reason = static_cast<uint32_t>(info.reason);
  outcome->base_or_limit = info.limit;
  outcome->length_or_used = info.used;
  outcome->requested = info.requested;
  const uint32_t behind = TokenBytes(entry);
  const size_t room = entry.result_bytes - behind;
  ring.end().WriteResult(entry.result_offset, std::span(kNoTokens).first(behind));
  const auto field = std::as_bytes(std::span(info.field)).first(std::min(info.field.size(), room));
  ring.end().WriteResult(entry.result_offset + behind, field);
  outcome->field_bytes = static_cast<uint32_t>(field.size());
}

// What must be right for any outcome to be written.
absl::Status CheckEntry(core::Ring& ring, const Submission& entry) {
  if (entry.flags != 0 || entry.reserved[0] != 0 || entry.reserved[1] != 0 || entry.reserved[2] != 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "reserved");
  }
  if (!ring.end().PayloadExists(entry.payload_offset, entry.payload_bytes) ||
      entry.payload_bytes % ring::kPayloadUnit != 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "payload_offset");
  }
  return absl::OkStatus();
}

core::RegisterArguments RegisterArgumentsOf(const Submission& entry, std::span<const MdlEntry> chain) {
  return {.region = MemoryRegionId{entry.object}, .chain = chain, .length = entry.length, .flags = entry.argument};
}

absl::Status ArmCq(const core::SessionGuard& guard, const Submission& entry) {
  if (entry.argument > static_cast<uint32_t>(CqNotifyType::kSolicited)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "type");
  }
  return guard.queues().Arm(CompletionQueueId{entry.object}, static_cast<CqNotifyType>(entry.argument));
}

}  // namespace

uint32_t EntryRunner::RequestsOf(const Submission& entry) {
  return entry.opcode == Opcode::kPost ? std::clamp(entry.count, 1U, ring::kChainMax) : 1;
}

uint32_t EntryRunner::CostOf(const Submission& entry) {
  return std::max(RequestsOf(entry), std::min(entry.payload_bytes, ring::kPayloadBytesMax) / kPayloadBytesPerRequest);
}

void EntryRunner::Report(const core::Lease& session, const Submission& entry, const absl::Status& status) {
  const core::Operation* const operation = core::OperationOf(entry.opcode);
  const bool is_decision = operation != nullptr && operation->audit == core::Audit::kDecision;
  if (!status.ok()) {
    session.tenant().tally()->CountRefusal(status);
    refused_.fetch_add(1, std::memory_order_relaxed);
  } else if (!is_decision || !observer_.HeedsSuccesses()) {
    return;
  }
  observer_.Report(core::Decision{.what = operation == nullptr ? "ring.nop" : operation->name,
                                  .caller = &session.owner(),
                                  .tenant = session.tenant().name(),
                                  .workload = session.tenant().workload(),
                                  .session = session.id(),
                                  .object = ObjectOf(operation, entry),
                                  .status = status,
                                  .note = "ring"});
}

void EntryRunner::Run(const std::shared_ptr<core::Ring>& ring, const core::Lease& session,
                      const core::SessionGuard& guard, const Submission& submitted) {
  Submission entry = submitted;
  if (!ring->end().PayloadExists(entry.result_offset, entry.result_bytes)) {
    entry.result_bytes = 0;
  }
  const absl::StatusOr<std::span<const uint64_t>> payload = CopyPayload(*ring, entry);
  ring->end().Taken();
  Outcome outcome = OutcomeOf(entry);
  bool pends = false;
  const absl::Status status =
      payload.ok() ? Execute(ring, session, guard, entry, *payload, &outcome, &pends) : payload.status();
  if (pends) {
    return;
  }
  if (!status.ok()) {
    SetFailure(*ring, entry, status, &outcome);
  }
  Report(session, entry, status);
  ring->Complete(outcome);
}

absl::StatusOr<std::span<const uint64_t>> EntryRunner::CopyPayload(core::Ring& ring, const Submission& entry) {
  RNICD_RETURN_IF_ERROR(CheckEntry(ring, entry));
  const size_t words = entry.payload_bytes / sizeof(uint64_t);
  if (payload_.size() < words) {
    payload_.resize(words);
  }
  ring.end().CopyPayload(entry.payload_offset, entry.payload_bytes, payload_);
  return std::span<const uint64_t>(payload_).first(words);
}

absl::Status EntryRunner::Execute(const std::shared_ptr<core::Ring>& ring, const core::Lease& session,
                                  const core::SessionGuard& guard, const Submission& entry,
                                  std::span<const uint64_t> payload, Outcome* outcome, bool* pends) {
  // The end of a request that pends. The session lives as long as the request does.
  const auto complete = [this, ring, entry, &session](const absl::Status& status, const Registration* registration) {
    Outcome late = OutcomeOf(entry);
    if (!status.ok()) {
      SetFailure(*ring, entry, status, &late);
    } else if (registration != nullptr) {
      SetRegistration(*registration, &late);
    }
    Report(session, entry, status);
    ring->Complete(late);
  };
  const MemoryRegionId region{entry.object};
  switch (entry.opcode) {
    case Opcode::kNop:
      return absl::OkStatus();
    case Opcode::kPost:
      return Post(*ring, guard, entry, payload, outcome);
    case Opcode::kRegisterMr: {
      RNICD_RETURN_IF_ERROR(ring::DecodeMdlChain(payload, entry.count, &mdl_chain_));
      const auto begun = guard.regions().Register(
          RegisterArgumentsOf(entry, mdl_chain_), {}, [complete](const absl::StatusOr<Registration>& registered) {
            complete(registered.status(), registered.ok() ? &*registered : nullptr);
          });
      *pends = begun.pending();
      if (begun.succeeded()) {
        SetRegistration(*begun.outcome(), outcome);
      }
      return begun.status();
    }
    case Opcode::kDeregisterMr: {
      const auto begun =
          guard.regions().Deregister(region, {}, [complete](const absl::Status& status) { complete(status, nullptr); });
      *pends = begun.pending();
      return begun.status();
    }
    case Opcode::kGetRemoteToken: {
      RNICD_ASSIGN_OR_RETURN(const RemoteToken token, guard.regions().GetRemoteToken(region));
      outcome->remote_token = token.value;
      return absl::OkStatus();
    }
    case Opcode::kArmCq:
      return ArmCq(guard, entry);
  }
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "opcode");
}

// As with a call, a refused request is no refused entry: what was posted before it is executed.
absl::Status EntryRunner::Post(core::Ring& ring, const core::SessionGuard& guard, const Submission& entry,
                               std::span<const uint64_t> payload, Outcome* outcome) {
  RNICD_RETURN_IF_ERROR(ring::DecodeChain(payload, entry.count, &chain_));
  RNICD_ASSIGN_OR_RETURN(const PostOutcome posted, guard.pairs().Post(QueuePairId{entry.object}, chain_));
  outcome->posted = posted.posted;
  if (!posted.failure.ok()) {
    SetFailure(ring, entry, posted.failure, outcome);
  }
  const uint32_t bytes = TokenBytes(entry);
  if (bytes != 0) {
    tokens_.assign(entry.count, 0);
    for (const IssuedToken& issued : posted.issued_tokens) {
      tokens_[issued.request_index] = issued.remote_token.value;
    }
    ring.end().WriteResult(entry.result_offset, std::as_bytes(std::span(tokens_)).first(bytes));
  }
  return absl::OkStatus();
}

}  // namespace rnicd::rings
