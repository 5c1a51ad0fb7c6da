#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

struct SelftestOptions {
  std::string socket_dir;
  // Grant of both sessions, as ClientOptions::grant.
  std::string grant;
  // Name of the adapter; empty means the node's first.
  std::string adapter;
  bool bench = true;
};

// Called as soon as something is known.
struct SelftestProgress {
  std::function<void(const SelftestAdapter&)> on_adapter;
  std::function<void(const SelftestCheck&)> on_check;
  std::function<void(const SelftestTiming&)> on_timing;
};

// Uses two sessions of this process on one adapter, an owner of memory and its peer: checks rules of NDK that a card
// has to keep, each over a connection of its own, then measures. Releases everything. The report has what was done
// before an error.
// Errors: the daemon's refusals and transport failures where nothing could be checked. A check that fails is no error.
absl::Status RunSelftest(const SelftestOptions& options, const SelftestProgress& progress, SelftestReport& report);

}  // namespace rnicd::ctl
