#include "tests/support/calls/data_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ring/chain.h"
#include "rnicd/v1/ring_service.pb.h"
#include "tests/support/calls/rpcs.h"
#include "wire/error_detail.h"
#include "wire/memory.h"
#include "wire/queue.h"
#include "wire/work_request.h"

namespace rnicd::test {
namespace {

using ring::Opcode;

// Results in one response of GetCqResults at most.
constexpr uint32_t kResultsMax = 16384;

std::atomic<uint64_t>& RequestCount() {
  static std::atomic<uint64_t> count = 0;
  return count;
}

std::atomic<uint64_t>& CompletionCount() {
  static std::atomic<uint64_t> count = 0;
  return count;
}

// The refusal as a call has it. Text and gRPC code are not in a ring: they belong to the reason.
CallOutcome Refusal(const ErrorInfo& info) {
  const absl::Status status = MakeError(info);
  CallOutcome outcome;
  outcome.code = static_cast<grpc::StatusCode>(status.code());
  outcome.message = std::string(status.message());
  outcome.has_detail = true;
  outcome.detail = wire::ToErrorDetail(status);
  return outcome;
}

CallOutcome OutcomeOf(const RingReply& reply) {
  const ring::Outcome& outcome = reply.outcome;
  if (outcome.status == 0 && outcome.reason == 0) {
    return {};
  }
  CallOutcome refusal = Refusal({.reason = static_cast<ErrorReason>(outcome.reason),
                                 .field = reply.field,
                                 .limit = outcome.base_or_limit,
                                 .used = outcome.length_or_used,
                                 .requested = outcome.requested});
  // The ring's own, which must be the reason's.
  refusal.detail.set_ntstatus(outcome.status);
  refusal.detail.set_ntstatus_name(std::string(NtStatusName(static_cast<NtStatus>(outcome.status))));
  return refusal;
}

RingRequest WithoutPayload(Opcode opcode, uint64_t object) {
  return {.entry = {.opcode = opcode, .object = object}, .payload = {}};
}

// True if the request says of each inline SGE how many bytes it has: a ring has no way to say anything else.
bool InlineLengthsAreTrue(const v1::WorkRequest& request) {
  const auto same = [](const auto& operation) {
    return std::ranges::all_of(operation.sges(),
                               [](const v1::Sge& sge) { return sge.inline_data().size() == sge.length(); });
  };
  return (request.flags() & v1::OP_FLAG_INLINE) == 0 ||
         (same(request.send()) && same(request.send_and_invalidate()) && same(request.receive()) &&
          same(request.read()) && same(request.write()));
}

// Nothing for a chain that has no form in a ring.
std::optional<RingRequest> EncodePost(const v1::PostRequest& request) {
  const std::vector<WorkRequest> chain = wire::FromWire(request.requests());
  if (chain.empty() || chain.size() > ring::kChainMax ||
      !std::ranges::all_of(request.requests(), InlineLengthsAreTrue)) {
    return std::nullopt;
  }
  RingRequest encoded = WithoutPayload(Opcode::kPost, request.qp_id());
  encoded.entry.count = static_cast<uint32_t>(chain.size());
  encoded.tokens = encoded.entry.count;
  for (const WorkRequest& each : chain) {
    const absl::StatusOr<size_t> bytes = ring::EncodedBytes(each);
    if (!bytes.ok()) {
      return std::nullopt;
    }
    const size_t begin = encoded.payload.size();
    encoded.payload.resize(begin + *bytes);
    ring::Encode(each, encoded.payload.data() + begin);
  }
  return encoded;
}

RingRequest EncodeRegister(const v1::RegisterMrRequest& request) {
  const std::vector<rnicd::MdlEntry> chain = wire::FromWire(request.mdl_chain());
  RingRequest encoded = WithoutPayload(Opcode::kRegisterMr, request.mr_id());
  encoded.entry.count = static_cast<uint32_t>(chain.size());
  encoded.entry.length = request.length();
  encoded.entry.argument = request.flags();
  encoded.payload.resize(chain.size() * ring::kMdlBytes);
  for (size_t index = 0; index < chain.size(); ++index) {
    ring::Encode(chain[index], encoded.payload.data() + index * ring::kMdlBytes);
  }
  return encoded;
}

}  // namespace

bool UsesRings() {
  static const bool rings = [] {
    const char* const value = std::getenv("RNICD_TEST_DATA_PATH");
    const std::string_view name = value != nullptr && *value != '\0' ? value : "calls";
    if (name != "calls" && name != "rings") {
      std::fprintf(stderr, "RNICD_TEST_DATA_PATH must be calls or rings, not \"%s\"\n", value);
      std::exit(1);
    }
    return name == "rings";
  }();
  return rings;
}

SharedMemoryUse UseOfSharedMemory() { return {.requests = RequestCount(), .completions = CompletionCount()}; }

std::optional<CallOutcome> DataPath::Carry(const char* path, const Message& request, Message* response) {
  using Runner = std::optional<CallOutcome> (*)(DataPath&, const Message&, Message*);
  static const std::map<std::string_view, Runner> kRunners = {
      {QueueStub::Post.path, &Run<&DataPath::Post, v1::PostRequest, v1::PostResponse>},
      {QueueStub::ArmCq.path, &Run<&DataPath::ArmCq, v1::ArmCqRequest, v1::ArmCqResponse>},
      {QueueStub::CreateCq.path, &Run<&DataPath::CreateCq, v1::CreateCqRequest, v1::CreateCqResponse>},
      {QueueStub::CloseCq.path, &Run<&DataPath::CloseCq, v1::CloseCqRequest, v1::CloseCqResponse>},
      {QueueStub::GetCqResults.path, &Run<&DataPath::GetCqResults, v1::GetCqResultsRequest, v1::GetCqResultsResponse>},
      {QueueStub::GetCqResultsEx.path,
       &Run<&DataPath::GetCqResultsEx, v1::GetCqResultsExRequest, v1::GetCqResultsExResponse>},
      {MemoryStub::RegisterMr.path, &Run<&DataPath::RegisterMr, v1::RegisterMrRequest, v1::RegisterMrResponse>},
      {MemoryStub::DeregisterMr.path, &Run<&DataPath::DeregisterMr, v1::DeregisterMrRequest, v1::DeregisterMrResponse>},
      {MemoryStub::GetRemoteToken.path,
       &Run<&DataPath::GetRemoteToken, v1::GetRemoteTokenRequest, v1::GetRemoteTokenResponse>},
  };
  const auto runner = kRunners.find(path);
  return runner == kRunners.end() ? std::nullopt : runner->second(*this, request, response);
}

std::optional<CallOutcome> DataPath::Post(const v1::PostRequest& request, v1::PostResponse* response) {
  const std::optional<RingRequest> encoded = EncodePost(request);
  const std::optional<RingReply> reply = encoded.has_value() ? Execute(*encoded) : std::nullopt;
  if (!reply.has_value()) {
    return std::nullopt;
  }
  CallOutcome outcome = OutcomeOf(*reply);
  // A refusal of one request names it; any other is that of the whole chain.
  if (!outcome.ok() && reply->outcome.posted == 0 && !reply->field.starts_with("requests[")) {
    return outcome;
  }
  response->set_posted(reply->outcome.posted);
  if (!outcome.ok()) {
    *response->mutable_failure() = outcome.detail;
  }
  for (uint32_t index = 0; index < reply->tokens.size(); ++index) {
    if (reply->tokens[index] != 0) {
      v1::IssuedToken& issued = *response->add_issued_tokens();
      issued.set_request_index(index);
      issued.set_remote_token(reply->tokens[index]);
    }
  }
  return CallOutcome();
}

std::optional<CallOutcome> DataPath::RegisterMr(const v1::RegisterMrRequest& request,
                                                v1::RegisterMrResponse* response) {
  const std::optional<RingReply> reply = request.allow_pending() ? std::nullopt : Execute(EncodeRegister(request));
  if (!reply.has_value()) {
    return std::nullopt;
  }
  CallOutcome outcome = OutcomeOf(*reply);
  if (outcome.ok()) {
    *response->mutable_registration() =
        wire::ToWire(Registration{.base_address = VirtualAddress{reply->outcome.base_or_limit},
                                  .length = reply->outcome.length_or_used,
                                  .local_token = LocalToken{reply->outcome.local_token},
                                  .remote_token = RemoteToken{reply->outcome.remote_token}});
  }
  return outcome;
}

std::optional<CallOutcome> DataPath::DeregisterMr(const v1::DeregisterMrRequest& request,
                                                  v1::DeregisterMrResponse* /*response*/) {
  const std::optional<RingReply> reply =
      request.allow_pending() ? std::nullopt : Execute(WithoutPayload(Opcode::kDeregisterMr, request.mr_id()));
  return reply.has_value() ? std::optional(OutcomeOf(*reply)) : std::nullopt;
}

std::optional<CallOutcome> DataPath::GetRemoteToken(const v1::GetRemoteTokenRequest& request,
                                                    v1::GetRemoteTokenResponse* response) {
  const std::optional<RingReply> reply = Execute(WithoutPayload(Opcode::kGetRemoteToken, request.mr_id()));
  if (!reply.has_value()) {
    return std::nullopt;
  }
  response->set_remote_token(reply->outcome.remote_token);
  return OutcomeOf(*reply);
}

std::optional<CallOutcome> DataPath::ArmCq(const v1::ArmCqRequest& request, v1::ArmCqResponse* /*response*/) {
  RingRequest arm = WithoutPayload(Opcode::kArmCq, request.cq_id());
  arm.entry.argument = static_cast<uint32_t>(request.type());
  const std::optional<RingReply> reply = Execute(arm);
  return reply.has_value() ? std::optional(OutcomeOf(*reply)) : std::nullopt;
}

std::optional<CallOutcome> DataPath::CreateCq(const v1::CreateCqRequest& request, v1::CreateCqResponse* response) {
  if (request.mapped()) {
    return std::nullopt;
  }
  v1::CreateCqRequest mapped = request;
  mapped.set_mapped(true);
  CallOutcome outcome = connection_.call(QueueStub::CreateCq.path, mapped, response);
  if (outcome.ok()) {
    const UniqueFd memory = connection_.fetch(response->mapped().memory_ticket());
    auto queue = std::make_shared<MappedQueue>(memory, response->mapped().file_bytes());
    EXPECT_TRUE(queue->reader.ok()) << queue->reader.status();
    response->clear_mapped();
    MutexLock lock(mutex_);
    queues_[response->cq_id()] = std::move(queue);
  }
  return outcome;
}

std::optional<CallOutcome> DataPath::CloseCq(const v1::CloseCqRequest& request, v1::CloseCqResponse* response) {
  CallOutcome outcome = connection_.call(QueueStub::CloseCq.path, request, response);
  if (outcome.ok()) {
    MutexLock lock(mutex_);
    queues_.erase(request.cq_id());
  }
  return outcome;
}

std::optional<CallOutcome> DataPath::GetCqResults(const v1::GetCqResultsRequest& request,
                                                  v1::GetCqResultsResponse* response) {
  return Take(request.cq_id(), request.max_results(), request.wait_ms(),
              [&](const Completion& completion) { *response->add_results() = wire::ToWire(completion); });
}

std::optional<CallOutcome> DataPath::GetCqResultsEx(const v1::GetCqResultsExRequest& request,
                                                    v1::GetCqResultsExResponse* response) {
  return Take(request.cq_id(), request.max_results(), request.wait_ms(),
              [&](const Completion& completion) { *response->add_results() = wire::ToWireEx(completion); });
}

template <typename Add>
std::optional<CallOutcome> DataPath::Take(uint64_t cq_id, uint32_t max, uint32_t wait_ms, const Add& add) {
  const std::shared_ptr<MappedQueue> queue = Find(cq_id);
  if (queue == nullptr || !queue->reader.ok()) {
    return std::nullopt;
  }
  MutexLock lock(queue->mutex);
  ring::QueueReader& reader = *queue->reader;
  if (wait_ms != 0 && !reader.Changed(reader.position())) {
    reader.Wait(std::chrono::milliseconds(wait_ms));
  }
  if (reader.status() == static_cast<uint32_t>(NtStatus::kBufferOverflow)) {
    return Refusal({.reason = ErrorReason::CQ_OVERRUN, .field = "cq_id"});
  }
  if (reader.status() != 0) {
    return std::nullopt;
  }
  Completion completion;
  for (uint32_t count = 0; count < std::min(max, kResultsMax) && reader.Poll(&completion); ++count) {
    add(completion);
    ++CompletionCount();
  }
  return CallOutcome();
}

std::shared_ptr<DataPath::MappedQueue> DataPath::Find(uint64_t cq_id) {
  MutexLock lock(mutex_);
  const auto found = queues_.find(cq_id);
  return found == queues_.end() ? nullptr : found->second;
}

std::optional<RingReply> DataPath::Execute(const RingRequest& request) {
  const std::shared_ptr<RingClient> ring = Ring();
  if (ring == nullptr || !ring->Holds(request)) {
    return std::nullopt;
  }
  std::optional<RingReply> reply = ring->Execute(request);
  if (reply.has_value()) {
    ++RequestCount();
  } else if (ring->end_reason() != static_cast<uint32_t>(ErrorReason::SESSION_ENDING)) {
    ADD_FAILURE() << "the ring had no outcome; its end_reason is " << ring->end_reason();
  }
  return reply;
}

std::shared_ptr<RingClient> DataPath::Ring() {
  MutexLock lock(mutex_);
  if (ring_ != nullptr) {
    return ring_;
  }
  v1::OpenRingResponse opened;
  const CallOutcome outcome = connection_.call(RingStub::OpenRing.path, v1::OpenRingRequest(), &opened);
  if (outcome.ok()) {
    const UniqueFd memory = connection_.fetch(opened.memory_ticket());
    ring_ = std::make_shared<RingClient>(memory, opened.file_bytes(), connection_.fetch(opened.doorbell_ticket()));
  } else if (outcome.detail.reason() != v1::ERROR_REASON_SESSION_REQUIRED &&
             outcome.detail.reason() != v1::ERROR_REASON_SESSION_ENDING) {
    ADD_FAILURE() << "the daemon opens no ring: " << outcome.message << " " << outcome.detail.ShortDebugString();
  }
  return ring_;
}

}  // namespace rnicd::test
