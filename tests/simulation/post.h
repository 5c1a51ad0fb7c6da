#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "daemon/core/work_request.h"
#include "tests/simulation/scene.h"

namespace rnicd::simulation {

// A work request as a client posts it, with the memory that its views point to; it must not move.
struct Draft {
  core::WorkRequest request;
  std::vector<uint64_t> pages;
  std::deque<std::string> inline_data;
  // For people.
  std::string text;
};

// Draws a request that makes sense for the queue pair, mostly.
void DrawRequest(const Scene& scene, const QueuePair& pair, Draft& draft);

// A posted request as the card takes it, or why it is refused. `ahead`: the requests of the same chain that were
// accepted before it.
struct CheckedRequest {
  Refusals why;
  Request request;
  // Of a bind.
  std::shared_ptr<Window> window;
};
CheckedRequest CheckRequest(const Scene& scene, const QueuePair& pair, const core::WorkRequest& request,
                            const std::vector<Request>& ahead);

}  // namespace rnicd::simulation
