#pragma once

#include <functional>

#include "client/ctl/selftest_scene.h"

namespace rnicd::ctl {

// Measures registrations, fast registrations and writes, each for at most half a second, and calls `on_timing` with
// each. What the adapter or the session's limits do not allow is a timing with a message.
void RunSelftestBench(SelftestScene& scene, const std::function<void(SelftestTiming)>& on_timing);

}  // namespace rnicd::ctl
