#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "ring/geometry.h"
#include "ring/layout.h"

namespace rnicd::ring {

// A client's end of a ring: numbers its requests, and keeps what belongs to each until its outcome was read.
// Lifetime: outlived by the mapping.
// Threads:  one at a time; Changed, HasTakenMore and Sleep may run beside the others.
class ClientEnd {
 public:
  // Errors: FIELD_OUT_OF_RANGE for a file that is not a ring of this version, or shorter than its header states.
  static absl::StatusOr<ClientEnd> Open(std::span<std::byte> file);

  // Contiguous bytes of the payload area for the next request; freed when its outcome is read, or, where it has none,
  // when the daemon has taken it. Empty when there is no room, for these bytes or for a request, until more are freed.
  // A multiple of kPayloadUnit, at most max_payload(). Called once at most for each request. `leave`: slots that must
  // stay free behind it.
  std::optional<uint32_t> Reserve(uint32_t bytes, uint32_t leave = 0);
  // Payload of this offset; valid until it is freed.
  std::span<std::byte> payload(uint32_t offset, uint32_t bytes) const;
  uint32_t max_payload() const { return geometry_.payload_bytes; }
  // Requests that can be outstanding: a power of two. The numbers of outstanding requests differ modulo this.
  uint32_t entries() const { return geometry_.entries; }

  // Submits a request to the daemon, after a successful Reserve. Its user_data is set to the number of the request,
  // which is returned: 0 for the first of a new ring, below 2^32. `doorbell`: the daemon must be woken.
  uint32_t Submit(Submission entry, bool* doorbell);

  // The next outcome, in the order in which requests were completed; its user_data is the request's number. What the
  // daemon wrote into the payload area is overwritten by later requests: read it before the next Reserve.
  std::optional<Outcome> Poll();
  // Outcomes that will follow.
  uint32_t unfinished() const { return unfinished_; }

  // Sleeps until there is an outcome, the ring has ended, or the time is over.
  void Wait(std::chrono::nanoseconds time);
  // The parts of Wait, for a process that submits while one of its threads waits. Position of the next outcome.
  uint32_t position() const { return read_; }
  // True when there is an outcome at this position, or the ring has ended.
  bool Changed(uint32_t position) const;
  // Entries that the daemon had taken when requests were last freed, and true when it has taken more.
  uint32_t taken() const { return taken_; }
  bool HasTakenMore(uint32_t taken) const;
  // Requests to be woken by the next outcome, until StopWaiting. Returns what Sleep needs; nothing when there is an
  // outcome already, or the ring has ended.
  std::optional<uint32_t> PrepareToSleep();
  // Sleeps until woken, or the time is over. May return early.
  void Sleep(uint32_t wakes, std::chrono::nanoseconds time) const;
  // For an event loop: the next outcome, or the ring's end, puts a byte into the pipe. True when there is one already.
  bool PrepareToWait();
  void StopWaiting();
  // 0, or the ErrorReason for which the ring has ended.
  uint32_t end_reason() const;

  // Processors that the two sides last ran on, plus 1; 0 if unknown.
  void SetCpu(uint32_t cpu_plus_one);
  uint32_t daemon_cpu() const;

 private:
  ClientEnd(std::span<std::byte> file, const RingGeometry& geometry);

  RingHeader& header() const { return *reinterpret_cast<RingHeader*>(file_.data()); }
  bool Announce(Wakeup wakeup);
  std::optional<uint32_t> ReserveFree(uint32_t bytes, uint32_t leave);
  // Frees the oldest requests that need their slots no more.
  void FreeOldest();

  // What a request occupies in the payload area, up to where, in bytes since the ring was opened.
  struct Slot {
    uint64_t payload_end = 0;
    // Its outcome was read.
    bool finished = false;
    bool has_outcome = true;
  };

  std::span<std::byte> file_;
  RingGeometry geometry_;
  std::vector<Slot> slots_;
  // Numbers of the next request and of the oldest one without an outcome; what is between them occupies slots.
  uint32_t next_ = 0;
  uint32_t oldest_ = 0;
  uint32_t unfinished_ = 0;
  uint32_t read_ = 0;
  // The daemon's index when requests were last freed.
  uint32_t taken_ = 0;
  // Bytes reserved and freed since the ring was opened.
  uint64_t reserved_ = 0;
  uint64_t freed_ = 0;
  bool waiting_ = false;
};

// For a ring that has ended: the requests without an outcome that the daemon has not taken and never will, in order, as
// far as its memory still says so. Their payload is in the file.
std::vector<Submission> NotTaken(std::span<std::byte> file);

}  // namespace rnicd::ring
