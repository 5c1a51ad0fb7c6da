#include "client/cpp/rings/ring_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/ndk/operation_type_of.h"
#include "base/status.h"
#include "client/cpp/rings/system_memory.h"
#include "client/cpp/transport_failure.h"
#include "ring/chain.h"

namespace rnicd::inline client {
namespace {

// Names of fields are shorter: "requests[1023].send_and_invalidate.sges[65535].length".
constexpr size_t kFieldBytesMax = 96;

size_t WholeUnits(size_t bytes) { return (bytes + ring::kPayloadUnit - 1) / ring::kPayloadUnit * ring::kPayloadUnit; }

size_t ResultBytes(const RingRequest& request) {
  return WholeUnits(request.tokens * sizeof(uint32_t) + kFieldBytesMax);
}

absl::Status Timeout() {
  return TransportFailure(absl::StatusCode::kDeadlineExceeded, "the ring had no outcome in time");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingChannel>> RingChannel::Open(SharedMapping mapping, UniqueFd doorbell,
                                                               const Options& options) {
  RNICD_ASSIGN_OR_RETURN(ring::ClientEnd end, ring::ClientEnd::Open(mapping.bytes()));
  return std::unique_ptr<RingChannel>(
      new RingChannel(std::move(mapping), std::move(end), std::move(doorbell), options));
}

RingChannel::RingChannel(SharedMapping mapping, ring::ClientEnd end, UniqueFd doorbell, const Options& options)
    : mapping_(std::move(mapping)),
      doorbell_(std::move(doorbell)),
      options_(options),
      spin_(options.spin_max),
      end_(std::move(end)),
      outstanding_(end_.entries()) {}

size_t RingChannel::BytesOf(const RingRequest& request) {
  return request.payload_bytes + (ring::HasOutcome(request.entry) ? ResultBytes(request) : 0);
}

std::optional<absl::StatusOr<RingReply>> RingChannel::Execute(const RingRequest& request,
                                                              absl::FunctionRef<void(std::byte*)> encode) {
  return Execute(request, encode, Deadline());
}

std::optional<absl::StatusOr<RingReply>> RingChannel::Execute(const RingRequest& request,
                                                              absl::FunctionRef<void(std::byte*)> encode,
                                                              Instant deadline) {
  // In a child of fork the mutex may be in any state, so do not take it.
  if (!mapping_.IsOfThisProcess() || BytesOf(request) > end_.max_payload()) {
    return std::nullopt;
  }
  Waiter self{.request = request};
  MutexLock lock(mutex_);
  if (!WaitForRoom(self, deadline, &self.offset)) {
    AppointReader();
    return Timeout();
  }
  if (!ended_.ok()) {
    return std::nullopt;
  }
  const uint32_t number = Submit(request, self.offset, encode);
  outstanding_[number % outstanding_.size()] = &self;
  self.submitted = true;
  RingDoorbell();
  absl::StatusOr<RingReply> reply = WaitForOutcome(self, number, deadline);
  AppointReader();
  return reply;
}

// The end of the ring is read first: nothing would report a request that is submitted afterwards.
absl::StatusOr<bool> RingChannel::Send(const RingRequest& request, absl::FunctionRef<void(std::byte*)> encode) {
  if (!mapping_.IsOfThisProcess() || BytesOf(request) > end_.max_payload()) {
    return false;
  }
  MutexLock lock(mutex_);
  if (end_.end_reason() != 0) {
    ReadOutcomes();
  }
  std::optional<uint32_t> offset = Reserve(request);
  if (!offset.has_value()) {
    Waiter self{.request = request};
    const bool in_time = WaitForRoom(self, Deadline(), &offset.emplace());
    AppointReader();
    if (!in_time) {
      return Timeout();
    }
  }
  if (!ended_.ok()) {
    return false;
  }
  Submit(request, *offset, encode);
  ++sent_;
  RingDoorbell();
  return true;
}

absl::Status RingChannel::AwaitSent(std::chrono::milliseconds wait_max) {
  if (!mapping_.IsOfThisProcess()) {
    return absl::OkStatus();  // A child made by fork has sent nothing.
  }
  uint64_t sent = 0;
  {
    MutexLock lock(mutex_);
    sent = sent_;
    if (executed_ == sent) {
      return absl::OkStatus();
    }
  }
  const auto reply = Execute({}, [](std::byte*) {}, Instant::clock::now() + wait_max);
  if (!reply.has_value()) {
    return ended();
  }
  RNICD_RETURN_IF_ERROR(reply->status());
  MutexLock lock(mutex_);
  executed_ = std::max(executed_, sent);
  return absl::OkStatus();
}

std::vector<Completion> RingChannel::TakeLost() {
  std::vector<Completion> lost;
  if (!mapping_.IsOfThisProcess() || end_.end_reason() == 0) {
    return lost;
  }
  MutexLock lock(mutex_);
  ReadOutcomes();
  if (std::exchange(executed_, sent_) == sent_) {
    return lost;
  }
  std::vector<WorkRequest> chain;
  for (const ring::Submission& entry : ring::NotTaken(mapping_.bytes())) {
    const std::span<const std::byte> payload = end_.payload(entry.payload_offset, entry.payload_bytes);
    const std::span words(reinterpret_cast<const uint64_t*>(payload.data()), payload.size() / sizeof(uint64_t));
    // What the program has overwritten cannot be reported.
    if (entry.opcode != ring::Opcode::kPost || !ring::DecodeChain(words, entry.count, &chain).ok()) {
      continue;
    }
    for (const WorkRequest& request : chain) {
      lost.push_back({.status = NtStatus::kCancelled,
                      .reason = ErrorReason::REQUEST_FLUSHED,
                      .type = TypeOf(request),
                      .request_context = request.request_context,
                      .queue_pair = QueuePairId{entry.object}});
    }
  }
  return lost;
}

// A request without an outcome leaves a slot for the Nop of RequestRoom.
std::optional<uint32_t> RingChannel::Reserve(const RingRequest& request) {
  return end_.Reserve(static_cast<uint32_t>(BytesOf(request)), ring::HasOutcome(request.entry) ? 0 : 1);
}

void RingChannel::RequestRoom() {
  if (end_.unfinished() == 0 && end_.Reserve(0).has_value()) {
    end_.Submit({.opcode = ring::Opcode::kNop}, &doorbell_wanted_);
    RingDoorbell();
  }
}

bool RingChannel::WaitForRoom(Waiter& self, Instant deadline, uint32_t* offset) {
  while (ended_.ok()) {
    if (const std::optional<uint32_t> room = Reserve(self.request); room.has_value()) {
      *offset = *room;
      return true;
    }
    if (Instant::clock::now() >= deadline) {
      return false;
    }
    AwaitProgress(self, deadline);
  }
  return true;
}

uint32_t RingChannel::Submit(const RingRequest& request, uint32_t offset, absl::FunctionRef<void(std::byte*)> encode) {
  const auto payload_bytes = static_cast<uint32_t>(request.payload_bytes);
  const auto result_bytes = static_cast<uint32_t>(BytesOf(request)) - payload_bytes;
  encode(end_.payload(offset, payload_bytes).data());
  if (result_bytes != 0) {
    std::memset(end_.payload(offset + payload_bytes, result_bytes).data(), 0, request.tokens * sizeof(uint32_t));
  }
  if (const uint32_t cpu = ring::CurrentCpu(); cpu != cpu_) {
    cpu_ = cpu;
    end_.SetCpu(cpu);
  }
  ring::Submission entry = request.entry;
  entry.payload_offset = offset;
  entry.payload_bytes = payload_bytes;
  entry.result_offset = offset + payload_bytes;
  entry.result_bytes = result_bytes;
  return end_.Submit(entry, &doorbell_wanted_);
}

absl::StatusOr<RingReply> RingChannel::WaitForOutcome(Waiter& self, uint32_t number, Instant deadline) {
  while (!self.done) {
    if (Instant::clock::now() >= deadline) {
      outstanding_[number % outstanding_.size()] = nullptr;
      return Timeout();
    }
    AwaitProgress(self, deadline);
  }
  RNICD_RETURN_IF_ERROR(self.failure);
  return std::move(self.reply);
}

void RingChannel::AwaitProgress(Waiter& self, Instant deadline) {
  if (reading_) {
    idle_.push_back(&self);
    self.changed.WaitUntil(mutex_, std::min(deadline, Instant::clock::now() + kSleepMax));
    std::erase(idle_, &self);
    return;
  }
  reading_ = true;
  SleepUntilOutcome(/*for_room=*/!self.submitted, deadline);
  reading_ = false;
  ReadOutcomes();
}

// Only the reading thread gets here, so nothing else reads outcomes or asks to be woken while the lock is released.
void RingChannel::SleepUntilOutcome(bool for_room, Instant deadline) {
  const uint32_t position = end_.position();
  const uint32_t taken = end_.taken();
  const Instant begin = Instant::clock::now();
  mutex_.Unlock();
  const bool changed = spin_.Until(daemon_cpu(), begin,
                                   [&] { return end_.Changed(position) || (for_room && end_.HasTakenMore(taken)); });
  mutex_.Lock();
  if (changed) {
    return;
  }
  if (for_room) {
    RequestRoom();
  }
  if (const std::optional<uint32_t> wakes = end_.PrepareToSleep(); wakes.has_value()) {
    mutex_.Unlock();
    const Instant now = Instant::clock::now();
    end_.Sleep(*wakes, std::clamp<std::chrono::nanoseconds>(deadline - now, std::chrono::nanoseconds(0), kSleepMax));
    const Instant woken = Instant::clock::now();
    spin_.Record(woken - begin);
    if (woken - now >= kSleepMax) {
      options_.look_for_end();
    }
    mutex_.Lock();
  }
  end_.StopWaiting();
}

// Read the reason first: every outcome of requests before the end is then visible, too.
void RingChannel::ReadOutcomes() {
  if (!ended_.ok()) {
    return;
  }
  const uint32_t reason = end_.end_reason();
  bool freed = false;
  while (const std::optional<ring::Outcome> outcome = end_.Poll()) {
    Deliver(*outcome);
    freed = true;
  }
  if (reason != 0) {
    EndLocked(MakeError(static_cast<ErrorReason>(reason)));
  } else if (freed) {
    for (Waiter* const waiter : idle_) {
      if (!waiter->submitted) {
        waiter->changed.NotifyOne();
      }
    }
  }
}

// Copies the result area: the next request may overwrite it.
void RingChannel::Deliver(const ring::Outcome& outcome) {
  Waiter* const waiter = std::exchange(outstanding_[outcome.user_data % outstanding_.size()], nullptr);
  if (waiter == nullptr) {
    return;
  }
  const RingRequest& request = waiter->request;
  const std::byte* const result = end_.payload(waiter->offset + static_cast<uint32_t>(request.payload_bytes), 0).data();
  waiter->reply.outcome = outcome;
  if (const uint32_t tokens = std::min(request.tokens, outcome.posted); tokens != 0) {
    waiter->reply.tokens.resize(tokens);
    std::memcpy(waiter->reply.tokens.data(), result, tokens * sizeof(uint32_t));
  }
  if (outcome.field_bytes != 0) {
    const size_t bytes = std::min<size_t>(outcome.field_bytes, kFieldBytesMax);
    waiter->reply.field.assign(reinterpret_cast<const char*>(result) + request.tokens * sizeof(uint32_t), bytes);
  }
  waiter->done = true;
  waiter->changed.NotifyOne();
}

void RingChannel::End(const absl::Status& why) {
  if (!mapping_.IsOfThisProcess()) {
    return;
  }
  MutexLock lock(mutex_);
  EndLocked(why);
}

void RingChannel::EndLocked(const absl::Status& why) {
  if (!ended_.ok()) {
    return;
  }
  ended_ = why;
  for (Waiter*& waiter : outstanding_) {
    if (waiter != nullptr) {
      waiter->failure = why;
      waiter->done = true;
      waiter->changed.NotifyOne();
      waiter = nullptr;
    }
  }
  for (Waiter* const waiter : idle_) {
    waiter->changed.NotifyOne();
  }
}

void RingChannel::AppointReader() {
  if (!reading_ && !idle_.empty()) {
    idle_.front()->changed.NotifyOne();
  }
}

absl::Status RingChannel::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

uint32_t RingChannel::daemon_cpu() const { return mapping_.IsOfThisProcess() ? end_.daemon_cpu() : 0; }

// Without the lock: the daemon may take this thread's processor.
void RingChannel::RingDoorbell() {
  if (!doorbell_wanted_) {
    return;
  }
  mutex_.Unlock();
  SetDoorbell(doorbell_.get());
  mutex_.Lock();
}

}  // namespace rnicd::inline client
