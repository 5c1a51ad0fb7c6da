#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "base/system/os.h"
#include "daemon/core/memory/shared_file.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/tenant/ledger.h"
#include "ring/client_pipe.h"
#include "ring/daemon_end.h"

namespace rnicd::core {

class Lease;

// Memory through which a session's requests travel without a call for each, and the descriptors that wake its two
// sides. docs/RINGS.md has what is in the memory.
// Lifetime: shared by its session, the host that serves it, and requests in progress.
// Threads:  safe, except for end(): its class names the threads that may use it.
class Ring {
 public:
  // Counts the ring, and its memory.
  struct Charges {
    Charge ring;
    Charge bytes;
  };
  // `lingering` outlives the ring. Errors: RINGS_UNAVAILABLE.
  static absl::StatusOr<std::shared_ptr<Ring>> Create(Os& os, LingeringMemory& lingering,
                                                      const ring::RingGeometry& geometry, std::weak_ptr<Lease> session,
                                                      Charges charges);

  // Must be called before the ring is attached.
  void Publish(RingId id, std::array<OwnedTicket, 3> tickets);
  RingId id() const { return id_; }
  // Null once it is gone.
  std::shared_ptr<Lease> session() const { return session_.lock(); }

  ring::DaemonEnd& end() { return end_; }
  // The client rings it to wake the host.
  int doorbell() const { return doorbell_.get(); }
  // A descriptor for the client; each once. Errors: RINGS_UNAVAILABLE.
  absl::StatusOr<UniqueFd> Duplicate(SharedDescriptor which);

  void Complete(const ring::Outcome& outcome);
  // Reports to the client that the ring has ended.
  void End(ErrorReason reason);

 private:
  Ring(Os& os, std::unique_ptr<SharedFile> file, UniqueFd doorbell, ring::ClientPipe pipe,
       const ring::RingGeometry& geometry, std::weak_ptr<Lease> session, Charge charge);

  Os& os_;
  const std::unique_ptr<SharedFile> file_;
  const UniqueFd doorbell_;
  ring::ClientPipe pipe_;
  ring::DaemonEnd end_;
  const std::weak_ptr<Lease> session_;
  const Charge charge_;
  RingId id_;
  std::array<OwnedTicket, 3> tickets_;
};

}  // namespace rnicd::core
