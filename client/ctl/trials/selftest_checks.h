#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "client/ctl/output/views.h"
#include "client/ctl/trials/selftest_scene.h"

namespace rnicd::ctl {

// One rule that a card has to keep.
struct SelftestRule {
  // Row of the specification, as in docs/ndk-conformance.md.
  uint32_t row = 0;
  // What holds when the check passes.
  std::string_view claim;
  // Known not to hold where fast registrations are made by registering when the request is posted.
  bool gap_of_registration = false;
  // Ok when it holds; else an error with a sentence. The scene's memory is as Reset leaves it.
  absl::Status (*check)(SelftestScene& scene);
};

// Every rule, registrations before fast registrations.
std::span<const SelftestRule> SelftestRules();

// Measures registrations, fast registrations and writes, each for at most half a second, and calls `on_timing` with
// each. What the adapter or the session's limits do not allow is a timing with a message.
void RunSelftestBench(SelftestScene& scene, const std::function<void(SelftestTiming)>& on_timing);

}  // namespace rnicd::ctl
