#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// The requests that may complete on the event stream, keyed by their request context. The thread that removes a
// completion from the table runs it: so each runs exactly once, however reply, event and end of stream race.
// Threads: safe. No completion runs under the lock.
class PendingRequests {
 public:
  // Called with the event, which may itself report a failure (see error), or with the reason why no event will come.
  using Completion = std::function<void(const absl::StatusOr<v1::RequestCompleted>&)>;

  // Adds a completion and returns the context to put into the request. Call it before sending: the event may overtake
  // the reply.
  // Errors: the status passed to Close, once closed.
  absl::StatusOr<uint64_t> Add(Completion completion);

  // Removes a completion, to run it now or to drop it; empty when its event has already arrived.
  std::optional<Completion> Take(uint64_t request_context);

  // Runs the completion that the event names, if there is one.
  void Complete(const v1::RequestCompleted& event);

  // Fails every request in the table and every later Add. `why` must not be ok. The first call wins.
  void Close(const absl::Status& why);

 private:
  Mutex mutex_;
  uint64_t next_context_ RNICD_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Completion> completions_ RNICD_GUARDED_BY(mutex_);
  absl::Status closed_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::inline client
