#include "ring/queue_end.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::ring {
namespace {

QueueResult ToResult(const Completion& completion) {
  return {.status = static_cast<uint32_t>(completion.status),
          .reason = static_cast<uint32_t>(completion.reason),
          .type = static_cast<uint16_t>(completion.type),
          .bytes = completion.bytes,
          .qp_context = completion.qp_context,
          .request_context = completion.request_context,
          .invalidated_token = completion.invalidated_token.value,
          .request_number = completion.request_number,
          .qp_id = completion.queue_pair.value};
}

Completion FromResult(const QueueResult& result) {
  return {.status = static_cast<NtStatus>(result.status),
          .reason = static_cast<ErrorReason>(result.reason),
          .type = static_cast<OperationType>(result.type),
          .bytes = result.bytes,
          .qp_context = result.qp_context,
          .request_context = result.request_context,
          .invalidated_token = RemoteToken{result.invalidated_token},
          .queue_pair = QueuePairId{result.qp_id},
          .request_number = result.request_number};
}

}  // namespace

QueueWriter::QueueWriter(std::span<std::byte> file, const QueueGeometry& geometry) : file_(file), geometry_(geometry) {
  header().description = Describe(geometry);
  tail_ = header().tail;
  head_ = header().head;
}

uint32_t QueueWriter::unread() {
  const uint32_t head = LoadAcquire(header().head);
  if (tail_ - head <= tail_ - head_) {
    head_ = head;
  }
  return tail_ - head_;
}

bool QueueWriter::Push(const Completion& completion) {
  const QueueResult result = ToResult(completion);
  const size_t slot = tail_ & (geometry_.entries - 1);
  std::memcpy(file_.data() + geometry_.completion_offset + slot * kEntryBytes, &result, sizeof(result));
  StoreInOrder(header().tail, ++tail_);
  return Wake();
}

bool QueueWriter::Notify() {
  StoreInOrder(header().notifications, ++notifications_);
  return WakeForNotification();
}

bool QueueWriter::Fail(uint32_t status) {
  StoreInOrder(header().status, status);
  const bool waits = Wake();
  return WakeForNotification() || waits;
}

bool QueueWriter::Wake() { return WakeSleeper(LoadInOrder(header().wakeup), header().wakes, &wakes_); }

bool QueueWriter::WakeForNotification() {
  return WakeSleeper(LoadInOrder(header().notification_wakeup), header().notification_wakes, &notification_wakes_);
}

absl::StatusOr<QueueReader> QueueReader::Open(std::span<std::byte> file) {
  Description description;
  if (file.size() < sizeof(QueueHeader)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "queue");
  }
  std::memcpy(&description, file.data(), sizeof(description));
  const QueueGeometry geometry{.entries = description.entries, .completion_offset = description.completion_offset};
  if (description.magic != kQueueMagic || description.version != kVersion || !IsPowerOfTwo(geometry.entries) ||
      geometry.completion_offset < sizeof(QueueHeader) ||
      geometry.completion_offset + size_t{geometry.entries} * kEntryBytes > file.size()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "queue");
  }
  return QueueReader(file, geometry);
}

QueueReader::QueueReader(std::span<std::byte> file, const QueueGeometry& geometry)
    : file_(file), geometry_(geometry), head_(LoadRelaxed(header().head)) {}

size_t QueueReader::Poll(std::span<Completion> to) {
  const uint32_t queued = LoadAcquire(header().tail) - head_;
  const size_t count = std::min<size_t>(queued, to.size());
  for (size_t index = 0; index < count; ++index) {
    const size_t slot = head_++ & (geometry_.entries - 1);
    to[index] = FromResult(CopyOf<QueueResult>(file_.data() + geometry_.completion_offset + slot * kEntryBytes));
  }
  if (count != 0) {
    StoreRelease(header().head, head_);
  }
  return count;
}

bool QueueReader::Announce(Wakeup wakeup) {
  StoreInOrder(header().wakeup, static_cast<uint32_t>(wakeup));
  return LoadInOrder(header().tail) != head_ || status() != 0;
}

void QueueReader::Wait(std::chrono::nanoseconds time) {
  if (const std::optional<uint32_t> wakes = PrepareToSleep(); wakes.has_value()) {
    Sleep(*wakes, time);
  }
  StopWaiting();
}

bool QueueReader::Changed(uint32_t position) const { return LoadAcquire(header().tail) != position || status() != 0; }

std::optional<uint32_t> QueueReader::PrepareToSleep() {
  const uint32_t wakes = LoadAcquire(header().wakes);
  return Announce(Wakeup::kFutex) ? std::nullopt : std::optional(wakes);
}

void QueueReader::Sleep(uint32_t wakes, std::chrono::nanoseconds time) const { FutexWait(header().wakes, wakes, time); }

void QueueReader::WaitForNotification(uint32_t seen, std::chrono::nanoseconds time) {
  const uint32_t wakes = LoadAcquire(header().notification_wakes);
  StoreInOrder(header().notification_wakeup, static_cast<uint32_t>(Wakeup::kFutex));
  if (LoadInOrder(header().notifications) == seen && status() == 0) {
    FutexWait(header().notification_wakes, wakes, time);
  }
  StoreRelaxed(header().notification_wakeup, 0);
}

bool QueueReader::PrepareToWait() { return Announce(Wakeup::kPipe); }

void QueueReader::StopWaiting() { StoreRelaxed(header().wakeup, 0); }

uint32_t QueueReader::notifications() const { return LoadAcquire(header().notifications); }

uint32_t QueueReader::status() const { return LoadInOrder(header().status); }

}  // namespace rnicd::ring
