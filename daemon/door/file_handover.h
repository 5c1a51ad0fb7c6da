#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/system/os.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/door/bulkhead.h"

namespace rnicd::door {

// A message of a client that hands a file over against a ticket, in one direction or the other.
struct HandoverRequest {
  core::Caller caller;
  // In whose turn it is served.
  std::string owner;
  core::FdTicket ticket{};
  // Receives the file that the client gives; empty when the client takes one. May block, and uses only what it owns.
  std::function<absl::StatusOr<UniqueFd>(Os&)> receive;
  // Called once, on any thread, with the file for the client, or an invalid one when the client gave one. Not called
  // after the end of FileHandover.
  std::function<void(absl::StatusOr<UniqueFd>)> reply;
};

// Serves such messages. A file is received only with a ticket that wants one, and in the bulkhead, because its sender
// may block the close and the seal of the file; a worker does the rest.
// Lifetime: the node and the bulkhead outlive it, the node also its workers' jobs.
// Threads:  safe.
class FileHandover {
 public:
  FileHandover(core::Node& node, Bulkhead& bulkhead);
  // What the bulkhead still receives is discarded.
  ~FileHandover();

  // Never blocks. May call `reply` at once.
  void Serve(HandoverRequest request);

 private:
  // How a job of the bulkhead finds the workers, as long as there are some.
  struct Link {
    Mutex mutex;
    core::Node* node RNICD_GUARDED_BY(mutex);
  };

  core::Node& node_;
  Bulkhead& bulkhead_;
  const std::shared_ptr<Link> link_;
};

}  // namespace rnicd::door
