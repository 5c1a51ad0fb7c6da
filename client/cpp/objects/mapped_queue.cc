#include "client/cpp/objects/mapped_queue.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "client/cpp/session/queue_events.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

using std::chrono::nanoseconds;

// Timeout of the wait for the event with the cause of the session's end, and of one look for it.
constexpr std::chrono::seconds kCauseMax{1};
constexpr std::chrono::milliseconds kOneLook{5};
// A program that polls busily learns of the session's end after so many polls.
constexpr uint32_t kEmptyPollsMax = 4096;

nanoseconds SleepUntil(Instant deadline) {
  return std::clamp<nanoseconds>(deadline - Instant::clock::now(), nanoseconds(0), kSleepMax);
}

}  // namespace

absl::StatusOr<std::shared_ptr<MappedQueue>> MappedQueue::Open(SharedMapping mapping, Options options) {
  RNICD_ASSIGN_OR_RETURN(const ring::QueueReader reader, ring::QueueReader::Open(mapping.bytes()));
  return std::shared_ptr<MappedQueue>(new MappedQueue(std::move(mapping), reader, std::move(options)));
}

MappedQueue::MappedQueue(SharedMapping mapping, const ring::QueueReader& reader, Options options)
    : mapping_(std::move(mapping)), options_(std::move(options)), spin_(options_.spin_max), reader_(reader) {}

absl::StatusOr<size_t> MappedQueue::Poll(std::span<Completion> to) {
  RNICD_RETURN_IF_ERROR(CheckProcess());
  MutexLock lock(mutex_);
  return PollLocked(to, {});
}

absl::StatusOr<size_t> MappedQueue::PollUntil(std::span<Completion> to, Instant deadline) {
  RNICD_RETURN_IF_ERROR(CheckProcess());
  MutexLock lock(mutex_);
  for (;;) {
    absl::StatusOr<size_t> count = PollLocked(to, deadline);
    if (!count.ok() || *count != 0 || to.empty() || Instant::clock::now() >= deadline) {
      return count;
    }
    if (AwaitCompletion(deadline)) {
      return 0;
    }
  }
}

absl::StatusOr<size_t> MappedQueue::PollLocked(std::span<Completion> to, Instant deadline) {
  if (reader_.status() != 0) {
    return Failure(deadline);
  }
  const size_t count = reader_.Poll(to);
  if (count != 0) {
    empty_polls_ = 0;
    return count;
  }
  if (++empty_polls_ % kEmptyPollsMax == 0) {
    (void)LookForEnd();
  }
  RNICD_RETURN_IF_ERROR(ended_);
  return count;
}

// Several threads may sleep on the same counter; the daemon wakes all of them.
bool MappedQueue::AwaitCompletion(Instant deadline) {
  const uint32_t position = reader_.position();
  const Instant begin = Instant::clock::now();
  mutex_.Unlock();
  const bool changed = spin_.Until(options_.daemon_cpu(), begin, [&] { return reader_.Changed(position); });
  mutex_.Lock();
  // Another thread may have polled since.
  if (changed || reader_.position() != position) {
    return false;
  }
  ++sleepers_;
  SleepUntilCompletion(SleepUntil(deadline));
  const auto waited = Instant::clock::now() - begin;
  spin_.Record(waited);
  --sleepers_;
  ClearWakeup();
  return waited >= kSleepMax && LookForEnd();
}

void MappedQueue::SleepUntilCompletion(std::chrono::nanoseconds time) {
  if (pipe_.has_value()) {
    const QueuePipe& pipe = *pipe_;  // Constant from now on.
    if (!reader_.PrepareToWait()) {
      mutex_.Unlock();
      pipe.Wait(time);
      mutex_.Lock();
    }
  } else if (const std::optional<uint32_t> wakes = reader_.PrepareToSleep(); wakes.has_value()) {
    mutex_.Unlock();
    reader_.Sleep(*wakes, time);
    mutex_.Lock();
  }
}

void MappedQueue::ClearWakeup() {
  if (sleepers_ != 0 || loop_waits_) {
    return;
  }
  reader_.StopWaiting();
  if (pipe_.has_value()) {
    (void)pipe_->Drain();
  }
}

absl::StatusOr<int> MappedQueue::Descriptor() {
  RNICD_RETURN_IF_ERROR(CheckProcess());
  MutexLock lock(mutex_);
  if (!pipe_.has_value()) {
    RNICD_ASSIGN_OR_RETURN(pipe_, options_.fetch_pipe());
  }
  return pipe_->descriptor();
}

// The pipe is emptied first: a completion behind that either puts a byte into it, or is seen here.
absl::StatusOr<bool> MappedQueue::PrepareToWait() {
  RNICD_RETURN_IF_ERROR(CheckProcess());
  MutexLock lock(mutex_);
  if (!pipe_.has_value()) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "descriptor");
  }
  const bool open = sleepers_ != 0 || pipe_->Drain();
  loop_waits_ = true;
  const bool ready = reader_.PrepareToWait();
  if (!ready && ended_.ok() && open) {
    return true;
  }
  loop_waits_ = false;
  ClearWakeup();
  if (reader_.status() != 0) {
    return Failure({});
  }
  if (!ready) {
    (void)LookForEnd();
    RNICD_RETURN_IF_ERROR(ended_);
    return TransportFailure(absl::StatusCode::kUnavailable, "the daemon has closed the queue's pipe");
  }
  return false;
}

void MappedQueue::StopWaiting() {
  if (mapping_.IsOfThisProcess()) {
    MutexLock lock(mutex_);
    loop_waits_ = false;
    ClearWakeup();
  }
}

absl::StatusOr<bool> MappedQueue::WaitForNotification(Instant deadline) {
  RNICD_RETURN_IF_ERROR(CheckProcess());
  MutexLock lock(mutex_);
  for (;;) {
    const uint32_t seen = notified_;
    const uint32_t now = reader_.notifications();
    // Read afterwards, and reported first: an overrun sets the status before it notifies, and is more important to the
    // thread than a notification.
    if (reader_.status() != 0) {
      return Failure(deadline);
    }
    if (now != seen) {
      notified_ = now;
      return true;
    }
    RNICD_RETURN_IF_ERROR(ended_);
    if (Instant::clock::now() >= deadline) {
      return false;
    }
    if (watched_) {
      watch_over_.WaitUntil(mutex_, std::min(deadline, Instant::clock::now() + kSleepMax));
      continue;
    }
    watched_ = true;
    const Instant begin = Instant::clock::now();
    mutex_.Unlock();
    reader_.WaitForNotification(seen, SleepUntil(deadline));
    mutex_.Lock();
    const bool elsewhere = Instant::clock::now() - begin >= kSleepMax && LookForEnd();
    watched_ = false;
    watch_over_.NotifyAll();
    if (elsewhere) {
      return true;
    }
  }
}

absl::Status MappedQueue::CheckProcess() const {
  if (mapping_.IsOfThisProcess()) {
    return absl::OkStatus();
  }
  return TransportFailure(absl::StatusCode::kFailedPrecondition, "the session belongs to the process before fork");
}

// The daemon closes the queues of a session before it reports the cause of the session's end on the event stream.
absl::Status MappedQueue::Failure(Instant deadline) {
  const auto status = static_cast<NtStatus>(reader_.status());
  if (status == NtStatus::kSuccess) {
    return ended_;
  }
  if (status != RowOf(ErrorReason::OBJECT_CLOSING).ntstatus) {
    return QueueFailure(status);
  }
  const Instant latest = std::min(deadline, Instant::clock::now() + kCauseMax);
  while (ended_.ok() && Instant::clock::now() < latest) {
    (void)LookForEnd();
    if (ended_.ok()) {
      session_ended_.WaitUntil(mutex_, std::min(latest, Instant::clock::now() + kOneLook));
    }
  }
  return ended_.ok() ? MakeError(ErrorReason::OBJECT_CLOSING, "cq_id") : ended_;
}

bool MappedQueue::LookForEnd() {
  mutex_.Unlock();
  const bool elsewhere = options_.look_for_end();
  mutex_.Lock();
  return elsewhere;
}

void MappedQueue::End(const absl::Status& why) {
  if (!mapping_.IsOfThisProcess()) {
    return;
  }
  MutexLock lock(mutex_);
  if (ended_.ok()) {
    ended_ = why;
    session_ended_.NotifyAll();
  }
}

}  // namespace rnicd::inline client
