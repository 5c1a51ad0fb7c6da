#pragma once

#include <cstdint>

#include "tests/simulation/model/trace.h"
#include "tests/simulation/world/findings.h"
#include "tests/simulation/world/witness.h"

namespace rnicd::simulation {

struct EpisodeLimits {
  // The episode ends when either limit is reached.
  uint64_t sessions = 0;
  uint64_t steps = 0;
};

// Runs one world from its first session to the last: opens sessions, lets them do what the seed decides, ends them all,
// and checks every invariant after every step. Stops at the first finding. Returns the number of opened sessions.
uint64_t RunEpisode(uint64_t seed, const EpisodeLimits& limits, Canary canary, Trace& trace, Findings& findings);

}  // namespace rnicd::simulation
