#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"

namespace rnicd::ctl {

// Memory of this side, and as much of the peer's.
struct TransferRange {
  std::span<const std::byte> buffer;
  LocalToken token;
  RemoteMemory remote;
};

// One end of a connection: a queue pair, and the completion queue to which it reports everything.
// Errors: the daemon's refusals, transport failures, and kInternal with a sentence that describes the difference.
struct QueueEnd {
  CompletionQueue queue;
  QueuePair pair;
  // Bytes that the adapter transfers in one request, at most.
  uint64_t request_max = 0;

  // With room for this many outstanding requests.
  static absl::StatusOr<QueueEnd> Open(const Client& client, uint32_t depth);

  // Posts a chain; an error unless all of it was posted.
  absl::StatusOr<PostOutcome> Post(const WorkChain& chain);
  // Waits for the next completion. Errors: kInternal after 30 seconds.
  absl::StatusOr<Completion> Finish();
  // Posts a chain of one request and returns its completion, whatever it is.
  absl::StatusOr<Completion> Try(const WorkChain& chain);
  // Posts a chain of one request; an error that names `what`, with the reason of its completion, unless it succeeds.
  absl::Status Run(const WorkChain& chain, const std::string& what);

  // Copy the buffer into the peer's memory, or that into the buffer, in as few requests as the adapter allows, one
  // after the other. Return the microseconds.
  absl::StatusOr<uint64_t> Write(const TransferRange& range);
  absl::StatusOr<uint64_t> Read(const TransferRange& range);
};

// Returns the microseconds since then.
uint64_t MicrosecondsSince(Instant began);

// Connects two queue pairs with each other.
absl::Status ConnectEnds(QueueEnd& one, QueueEnd& other);

}  // namespace rnicd::ctl
