#pragma once

#include <cstdint>

#include "tests/simulation/findings.h"
#include "tests/simulation/trace.h"
#include "tests/simulation/witness.h"

namespace rnicd::simulation {

struct EpisodeLimits {
  // It ends when either is reached.
  uint64_t sessions = 0;
  uint64_t steps = 0;
};

// One world from its first session to the last: opens sessions, lets them do what the seed says, ends them all, and
// checks every invariant after every step. Answers how many sessions were opened; stops at the first finding.
uint64_t RunEpisode(uint64_t seed, const EpisodeLimits& limits, Canary canary, Trace& trace, Findings& findings);

}  // namespace rnicd::simulation
