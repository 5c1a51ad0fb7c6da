#pragma once

#include <memory>

#include "base/mutex.h"
#include "daemon/core/request/node.h"
#include "daemon/door/bulkhead.h"
#include "daemon/transport/admission.h"

namespace rnicd::transport {

// Serves the packets of the fd socket. A descriptor is received only with a ticket that wants one, and in the bulkhead,
// because its sender may block the close and the seal of the file; a worker does the rest. Fetches go to a worker at
// once. The visitor keeps its place until its reply is sent.
// Lifetime: the node and the bulkhead outlive it, the node also its workers' jobs. Threads: safe.
class FdService {
 public:
  FdService(core::Node& node, door::Bulkhead& bulkhead);
  // What the bulkhead still receives is discarded.
  ~FdService();

  // Takes over the packet that waits in the visitor's socket. Never blocks.
  void Serve(Visitor visitor);

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

}  // namespace rnicd::transport
