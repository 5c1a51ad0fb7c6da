#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/fd_exchange.h"
#include "daemon/door/bulkhead.h"
#include "daemon/pipes/peer.h"

namespace rnicd::pipes {

// A message that hands a handle over, in one direction or the other.
struct SectionRequest {
  Peer peer;
  core::FdTicket ticket{};
  // Value in the client of the handle that it gives; 0 when it takes one.
  uint32_t given = 0;
  // Called once with the handle's value in the client, or 0 after a gift; on any thread. Not called after the service's
  // end.
  std::function<void(const absl::StatusOr<uint32_t>&)> on_done;
};

// Serves these messages as transport serves the packets of the fd socket: a handle is duplicated only with a ticket
// that wants one, and in the bulkhead, because what is behind it may block its close; a worker does the rest.
// Lifetime: the node and the bulkhead outlive it, the node also its workers' jobs. Threads: safe.
class SectionService {
 public:
  SectionService(core::Node& node, door::Bulkhead& bulkhead);
  // What the bulkhead still receives is discarded.
  ~SectionService();

  // Never blocks. May call `on_done` at once.
  void Serve(SectionRequest request);

 private:
  // How a job of the bulkhead finds the workers, as long as there are some.
  struct Link {
    Mutex mutex;
    core::Node* node RNICD_GUARDED_BY(mutex);
  };

  core::Node& node_;
  door::Bulkhead& bulkhead_;
  const std::shared_ptr<Link> link_;
};

}  // namespace rnicd::pipes
