#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"

namespace rnicd::ctl {

// One end of a connection: a queue pair, and the completion queue to which it reports everything.
// Errors: the daemon's refusals, transport failures, and kInternal with a sentence that describes the difference.
struct QueueEnd {
  CompletionQueue queue;
  QueuePair pair;

  // With room for this many outstanding requests.
  static absl::StatusOr<QueueEnd> Open(const Client& client, uint32_t depth);

  // Posts a chain; an error unless all of it was posted.
  absl::StatusOr<PostOutcome> Post(const WorkChain& chain);
  // Waits for the next completion. Errors: kInternal after 30 seconds.
  absl::StatusOr<Completion> Finish();
  // Posts a chain of one request and returns its completion, whatever it is.
  absl::StatusOr<Completion> Try(const WorkChain& chain);
  // Posts a chain of one request; an error that names `what` unless it succeeds.
  absl::Status Run(const WorkChain& chain, const std::string& what);
};

// Connects two queue pairs with each other.
absl::Status ConnectEnds(QueueEnd& one, QueueEnd& other);

}  // namespace rnicd::ctl
