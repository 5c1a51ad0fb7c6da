#include "ring/daemon_end.h"

#include <cstring>

#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::ring {

DaemonEnd::DaemonEnd(std::span<std::byte> file, const RingGeometry& geometry) : file_(file), geometry_(geometry) {
  head_ = header().submission_head;
  owed_ = header().completion_tail;
  completed_ = owed_;
  header().description = Describe(geometry);
  // A client that submits before a thread serves the ring must ring the doorbell.
  StoreRelease(header().submission_wakeup, 1);
  asleep_ = true;
}

RingHeader& DaemonEnd::header() const { return *reinterpret_cast<RingHeader*>(file_.data()); }

DaemonEnd::Next DaemonEnd::Peek(Submission* entry) {
  const uint32_t waiting = LoadAcquire(header().submission_tail) - head_;
  if (waiting == 0) {
    return Next::kNothing;
  }
  // Outcomes of entries taken that the client has not read; each of them has a slot. Never less than those not written
  // yet: a client that claims to have read outcomes that were never written could have any number of requests in
  // progress.
  const uint32_t unread = owed_ - LoadAcquire(header().completion_head);
  if (waiting > geometry_.entries || unread > geometry_.entries || unread < unfinished()) {
    return Next::kBroken;
  }
  if (unread == geometry_.entries) {
    return Next::kNothing;
  }
  const size_t slot = head_ & (geometry_.entries - 1);
  *entry = CopyOf<Submission>(file_.data() + geometry_.submission_offset + slot * kEntryBytes);
  return Next::kEntry;
}

bool DaemonEnd::PayloadExists(uint32_t offset, uint32_t bytes) const {
  return offset % kPayloadUnit == 0 && bytes <= geometry_.payload_bytes && offset <= geometry_.payload_bytes - bytes;
}

void DaemonEnd::CopyPayload(uint32_t offset, uint32_t bytes, std::span<uint64_t> copy) const {
  const std::byte* const from = file_.data() + geometry_.payload_offset + offset;
  CopyWords(reinterpret_cast<const uint64_t*>(from), copy.first(bytes / sizeof(uint64_t)));
}

void DaemonEnd::Pop(bool has_outcome) {
  owed_ += has_outcome ? 1 : 0;
  StoreRelease(header().submission_head, ++head_);
}

// An entry without room for its completion waits: the client rings the doorbell after it has read a completion.
bool DaemonEnd::PrepareToSleep() {
  if (!asleep_) {
    StoreInOrder(header().submission_wakeup, 1);
    asleep_ = true;
  }
  const uint32_t tail = LoadInOrder(header().submission_tail);
  return tail != head_ && owed_ - LoadInOrder(header().completion_head) != geometry_.entries;
}

void DaemonEnd::StayAwake() {
  if (asleep_) {
    StoreRelaxed(header().submission_wakeup, 0);
    asleep_ = false;
  }
}

void DaemonEnd::WriteResult(uint32_t offset, std::span<const std::byte> bytes) {
  // An empty result area may be anywhere.
  if (!bytes.empty()) {
    std::memcpy(file_.data() + geometry_.payload_offset + offset, bytes.data(), bytes.size());
  }
}

bool DaemonEnd::Complete(const Outcome& outcome) {
  MutexLock lock(mutex_);
  const uint32_t number = completed_.load(std::memory_order_relaxed);
  const size_t slot = number & (geometry_.entries - 1);
  std::memcpy(file_.data() + geometry_.completion_offset + slot * kEntryBytes, &outcome, sizeof(outcome));
  // Stored before the client can see the completion, so that the client's read index never exceeds it.
  completed_.store(number + 1, std::memory_order_relaxed);
  StoreInOrder(header().completion_tail, number + 1);
  return Wake();
}

bool DaemonEnd::End(uint32_t reason) {
  MutexLock lock(mutex_);
  if (ended_) {
    return false;
  }
  ended_ = true;
  StoreInOrder(header().end_reason, reason);
  return Wake();
}

bool DaemonEnd::Wake() {
  return WakeSleeper(LoadInOrder(header().completion_wakeup), header().completion_wakes, &wakes_);
}

uint32_t DaemonEnd::client_cpu() const { return LoadRelaxed(header().client_cpu); }

void DaemonEnd::SetCpu(uint32_t cpu_plus_one) { StoreRelaxed(header().daemon_cpu, cpu_plus_one); }

uint32_t DaemonEnd::unfinished() const { return owed_ - completed_.load(std::memory_order_relaxed); }

}  // namespace rnicd::ring
