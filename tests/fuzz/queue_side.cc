#include "tests/fuzz/queue_side.h"

#include <algorithm>
#include <variant>

#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "tests/fuzz/check.h"

namespace rnicd::fuzz {
namespace {

constexpr uint32_t kManyResults = 1000;

bool IssuesToken(const WorkRequest& request) {
  return std::holds_alternative<WorkRequest::FastRegister>(request.operation) ||
         std::holds_alternative<WorkRequest::Bind>(request.operation);
}

std::span<const std::byte> BytesOf(core::Session& session, MemoryObjectId id) {
  const auto memory = session.Begin()->memory().Find(id);
  Check(memory.ok(), "memory exists until it is released");
  return (*memory)->BeginUse()->object().mapping();
}

// True if the queue has overrun or was closed by its owner.
bool IsDeadQueue(const absl::Status& status) {
  return FailedWith(status, ErrorReason::CQ_OVERRUN) || FailedWith(status, ErrorReason::OBJECT_CLOSING) ||
         FailedWith(status, ErrorReason::OBJECT_NOT_FOUND);
}

}  // namespace

void Tally::Post(uint64_t context, const WorkRequest& request) {
  requests_[context] = {.receive = std::holds_alternative<WorkRequest::Receive>(request.operation),
                        .silent = (request.flags & kOpFlagSilentSuccess) != 0};
}

void Tally::Complete(const Completion& result) {
  const auto found = requests_.find(result.request_context);
  Check(found != requests_.end(), "a completed request was posted");
  Posted& request = found->second;
  Check(!request.complete, "a request completes once");
  request.complete = true;
  const OperationType type = result.type;
  const bool receive = type == OperationType::kReceive || type == OperationType::kReceiveAndInvalidate;
  Check(receive == request.receive, "a completion reports the kind of its request");
  Check(!request.silent || result.status != NtStatus::kSuccess, "a silent request tells of its failure only");
  uint64_t& last = last_[receive ? 1 : 0];
  Check(found->first > last, "each queue completes in the order of its posts");
  last = found->first;
}

void Tally::CheckComplete() const {
  for (const auto& [context, request] : requests_) {
    Check(request.complete || request.silent, "every request completes");
  }
}

QueueSide::QueueSide(FuzzNode& node, uint64_t process, uint32_t cq_depth) : session(node.Open(process)), node_(node) {
  adapter = *session->Begin()->adapters().Open("soft0", {1, 2});
  domain = *session->Begin()->domains().Create(adapter);
  queue = *session->Begin()->queues().Create(adapter, cq_depth, 0);
  // The kernel usually places each mapping below the previous one, so that a transfer past an end would hit one of
  // these.
  untouched_.push_back(node.Allocate(*session, kNdkPageBytes));
  memory = node.Allocate(*session, (kSharedPages + 1) * kNdkPageBytes);
  untouched_.push_back(node.Allocate(*session, kNdkPageBytes));
  region = *session->Begin()->regions().Create(domain, false);
  read_only = *session->Begin()->regions().Create(domain, false);
  Register(region, 2, kMrFlagRemoteWrite | kMrFlagRemoteRead | kMrFlagReadSink);
  Register(read_only, kSharedPages, kMrFlagRemoteRead);
  fast = *session->Begin()->regions().Create(domain, true);
  local_fast = *session->Begin()->regions().Create(domain, true);
  for (const MemoryRegionId id : {fast, local_fast}) {
    Check(session->Begin()
              ->regions()
              .Initialize({.region = id, .max_pages = kFastPagesMax, .remote_access = id == fast}, {}, nullptr)
              .ok(),
          "a fast region can be made ready");
  }
  window = *session->Begin()->windows().Create(domain);
  const MdlEntry entry{.memory_id = memory,
                       .byte_offset = 0,
                       .byte_count = kSharedPages * kNdkPageBytes,
                       .virtual_address = {kRegionBase}};
  mapping = *session->Begin()->mappings().Build({.adapter = adapter, .chain = {&entry, 1}, .length = entry.byte_count});
  NewPair();
}

void QueueSide::Register(MemoryRegionId id, uint64_t pages, uint32_t flags) {
  const MdlEntry entry{
      .memory_id = memory, .byte_offset = 0, .byte_count = pages * kNdkPageBytes, .virtual_address = {kRegionBase}};
  const auto registered = session->Begin()->regions().Register(
      {.region = id, .chain = {&entry, 1}, .length = entry.byte_count, .flags = flags}, {}, nullptr);
  Check(registered.succeeded(), "memory can be registered");
}

void QueueSide::NewPair() {
  if (pair_context_ != 0) {
    const auto old = session->Begin()->pairs().Close(pair, {}, [](const absl::Status&) {});
    node_.Settle();
    Check(old.ok(), "a queue pair can be closed");
    Poll(kManyResults);
    if (!dead_) {
      tallies_.at(pair_context_).CheckComplete();
    }
  }
  ++pair_context_;
  tallies_[pair_context_];
  const auto created = session->Begin()->pairs().Create({.domain = domain,
                                                         .receive_queue = queue,
                                                         .initiator_queue = queue,
                                                         .context = pair_context_,
                                                         .limits = kPairLimits});
  Check(created.ok() || IsDeadQueue(created.status()), "a queue pair can be made unless its queue is dead");
  pair = created.value_or(QueuePairId{});
  if (!created.ok()) {
    pair_context_ = 0;
  }
}

std::string QueueSide::Address() const {
  const auto view = session->Begin()->pairs().Query(pair);
  return view.ok() ? view->address : "";
}

void QueueSide::CheckOutcome(std::span<const WorkRequest> chain, const PostOutcome& outcome) const {
  Check(outcome.posted <= chain.size(), "at most the whole chain is posted");
  Check(outcome.failure.ok() == (outcome.posted == chain.size()), "a chain ends where a request is refused");
  if (!outcome.failure.ok()) {
    const ErrorInfo info = ErrorInfoOf(outcome.failure);
    Check(info.reason != ErrorReason::INTERNAL_FAULT, "no request causes an internal error");
    Check(info.field.starts_with("requests[" + std::to_string(outcome.posted) + "]"), "a refusal names its request");
  }
  auto issued = outcome.issued_tokens.begin();
  for (uint32_t index = 0; index < outcome.posted; ++index) {
    if (IssuesToken(chain[index])) {
      Check(issued != outcome.issued_tokens.end() && issued->request_index == index && issued->remote_token.value != 0,
            "each FastRegister and Bind has its token");
      ++issued;
    }
  }
  Check(issued == outcome.issued_tokens.end(), "and nothing else has one");
}

void QueueSide::Post(std::span<const WorkRequest> chain) {
  const auto outcome = session->Begin()->pairs().Post(pair, chain);
  if (!outcome.ok()) {
    Check(pair_context_ == 0, "requests for an existing queue pair are checked one by one");
    return;
  }
  CheckOutcome(chain, *outcome);
  for (const WorkRequest& request : chain.first(outcome->posted)) {
    tallies_.at(pair_context_).Post(request.request_context, request);
  }
}

void QueueSide::Poll(uint32_t max) {
  const auto results = session->Begin()->queues().GetResults(queue, max);
  if (!results.ok()) {
    Check(IsDeadQueue(results.status()), "a queue can be polled until it overruns or is closed");
    dead_ = true;
    return;
  }
  Check(!dead_, "a dead queue stays dead");
  Check(results->size() <= max, "at most the requested number of results is returned");
  for (const Completion& result : *results) {
    const auto tally = tallies_.find(result.qp_context);
    Check(tally != tallies_.end(), "a completion is of one of our queue pairs");
    tally->second.Complete(result);
  }
}

void QueueSide::DrainEvents() {
  for (auto event = session->events().Pop(); event.has_value(); event = session->events().Pop()) {
    if (const auto* const gone = std::get_if<core::QpDisconnected>(&event->body)) {
      Check(++disconnected_[gone->context] == 1, "a queue pair's disconnect is reported once");
    }
  }
}

void QueueSide::CheckUntouched() const {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  for (const MemoryObjectId id : untouched_) {
    const std::span<const std::byte> bytes = BytesOf(*session, id);
    Check(std::all_of(bytes.begin(), bytes.end(), is_zero), "no byte moves into memory that is not registered");
  }
  const std::span<const std::byte> behind = BytesOf(*session, memory).subspan(kSharedPages * kNdkPageBytes);
  Check(std::all_of(behind.begin(), behind.end(), is_zero), "no byte moves past the end of a region");
}

}  // namespace rnicd::fuzz
