#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "daemon/core/request/session_objects.h"
#include "daemon/core/ring/ring.h"

namespace rnicd::core {

// A new ring, and the tickets for its descriptors.
struct OpenedRing {
  RingId ring;
  uint64_t file_bytes = 0;
  FdTicket memory{};
  FdTicket doorbell{};
  FdTicket pipe{};
};

// The rings of a session.
class SessionRings final : public SessionObjects<RingId, Ring> {
 public:
  explicit SessionRings(SessionRequests& requests) : SessionObjects(requests) {}

  // 0 selects the default of `entries` or `payload_bytes`. Errors: FIELD_OUT_OF_RANGE, QUOTA_RINGS, QUOTA_HEAP_BYTES,
  // RINGS_UNAVAILABLE.
  absl::StatusOr<OpenedRing> Open(uint32_t entries, uint32_t payload_bytes);
  // Pends until nothing more is taken from the ring.
  MaybePending<> Close(RingId id, const Done<>& done);
  absl::StatusOr<UniqueFd> Duplicate(RingId id, SharedDescriptor which);

 private:
  friend class Session;
  // Returns when nothing more is taken from any of them. At the end of the session.
  void CloseAll();
};

}  // namespace rnicd::core
