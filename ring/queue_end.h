#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "base/ndk/completion.h"
#include "ring/geometry.h"
#include "ring/layout.h"

// The two ends of a mapped completion queue.
namespace rnicd::ring {

// The daemon's end. Trusts only the client's head index, and only if its value is possible.
// Lifetime: outlived by the mapping.
// Threads:  one call at a time.
class QueueWriter {
 public:
  // `file` is zero-filled memory of geometry.file_bytes(), aligned to a page, that no client has yet. Writes the
  // description. Indices go on from what is in the file.
  QueueWriter(std::span<std::byte> file, const QueueGeometry& geometry);

  uint32_t capacity() const { return geometry_.entries; }
  // Completions that were written and not read, at most capacity(). A client whose head is impossible has read nothing
  // since the last possible one.
  uint32_t unread();
  // True when fewer than `depth` are unread. Reads the client's index only where the last one that was read leaves that
  // open: the client writes its line all the time.
  bool HasRoom(uint32_t depth) { return tail_ - head_ < depth || unread() < depth; }
  // Writes a completion; there must be room. Wakes a client that waits for it with a futex, as the next two do; true
  // when it wants a byte in the pipe.
  bool Push(const Completion& completion);
  // A notification for which the queue was armed.
  bool Notify();
  // The queue has failed with this NTSTATUS.
  bool Fail(uint32_t status);

 private:
  QueueHeader& header() const { return *reinterpret_cast<QueueHeader*>(file_.data()); }
  bool Wake();
  bool WakeForNotification();

  const std::span<std::byte> file_;
  const QueueGeometry geometry_;
  // Private copies of what was written, and the last possible head.
  uint32_t tail_ = 0;
  uint32_t head_ = 0;
  uint32_t notifications_ = 0;
  uint32_t wakes_ = 0;
  uint32_t notification_wakes_ = 0;
};

// A client's end.
// Threads: one at a time; Changed, Sleep, notifications and status may run beside the others, and so may
// WaitForNotification in one thread.
class QueueReader {
 public:
  // Errors: FIELD_OUT_OF_RANGE for a file that is not a queue of this version, or shorter than its header states.
  static absl::StatusOr<QueueReader> Open(std::span<std::byte> file);

  // Takes the oldest completions, as many as there are and fit; returns their number.
  size_t Poll(std::span<Completion> to);
  // Takes the oldest; false when there is none.
  bool Poll(Completion* completion) { return Poll(std::span(completion, 1)) != 0; }
  // Sleeps until there is a completion, the queue has failed, or the time is over.
  void Wait(std::chrono::nanoseconds time);
  // The parts of Wait, for a process that polls while some of its threads wait. Position of the next completion.
  uint32_t position() const { return head_; }
  // True when there is a completion at this position, or the queue has failed.
  bool Changed(uint32_t position) const;
  // Requests to be woken by the next completion, until StopWaiting. Returns what Sleep needs; nothing when there is a
  // completion already, or the queue has failed.
  std::optional<uint32_t> PrepareToSleep();
  // Sleeps until woken, or the time is over. May return early.
  void Sleep(uint32_t wakes, std::chrono::nanoseconds time) const;
  // Sleeps until there are more than `seen` notifications, the queue has failed, or the time is over.
  void WaitForNotification(uint32_t seen, std::chrono::nanoseconds time);
  // For an event loop: the next completion, or failure, puts a byte into the pipe. True when there is one already.
  bool PrepareToWait();
  void StopWaiting();
  // Notifications since the queue was created, modulo 2^32.
  uint32_t notifications() const;
  // 0, or the NTSTATUS with which the queue has failed: what it holds is lost.
  uint32_t status() const;

 private:
  QueueReader(std::span<std::byte> file, const QueueGeometry& geometry);
  QueueHeader& header() const { return *reinterpret_cast<QueueHeader*>(file_.data()); }
  bool Announce(Wakeup wakeup);

  std::span<std::byte> file_;
  QueueGeometry geometry_;
  uint32_t head_ = 0;
};

}  // namespace rnicd::ring
