#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/ndk/work_request.h"
#include "tests/simulation/model/scene.h"

namespace rnicd::simulation {

// A work request as a client posts it, with the memory that its views point to; must not be moved.
struct Draft {
  WorkRequest request;
  std::vector<uint64_t> pages;
  std::deque<std::string> inline_data;
  // Description for the trace.
  std::string text;
};

// Draws a request, usually a valid one for the queue pair.
void DrawRequest(const Scene& scene, const QueuePair& pair, Draft& draft);

// A posted request as the card accepts it, or why it is refused. `ahead`: the requests of the same chain that were
// accepted before it.
struct CheckedRequest {
  Refusals why;
  Request request;
  // Binds only.
  std::shared_ptr<Window> window;
};
CheckedRequest CheckRequest(const Scene& scene, const QueuePair& pair, const WorkRequest& request,
                            const std::vector<Request>& ahead);

}  // namespace rnicd::simulation
