#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/strong_id.h"
#include "daemon/core/queue/completion_queue.h"
#include "daemon/gate/call.h"

namespace rnicd::service {

// Fields that GetCqResults and GetCqResultsEx share.
struct CqPoll {
  CompletionQueueId queue;
  uint32_t max = 0;
  std::chrono::milliseconds wait{0};
};

template <typename Request>
CqPoll PollOf(const Request& request) {
  return {.queue = CompletionQueueId{request.cq_id()},
          .max = request.max_results(),
          .wait = std::chrono::milliseconds(request.wait_ms())};
}

// Polls a completion queue and finishes the call, at once or after a wait that occupies no thread. `append` writes one
// result to the response.
void PollCq(const std::shared_ptr<gate::Call>& call, const core::SessionGuard& session, const CqPoll& poll,
            const std::function<void(const Completion&)>& append);

}  // namespace rnicd::service
