#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {

struct FastRegisterDemoOptions {
  std::string socket_dir;
  // Grant of both sessions, as ClientOptions::grant.
  std::string grant;
  // Number of 4 KiB pages; at least 1.
  uint64_t pages = 0;
  // Seed of the order of the pages and of the data written into them.
  uint32_t seed = 0;
};

// Uses two sessions of this process: the owner registers shuffled pages of its memory with one work request, the peer
// writes and reads them through the one token, the owner invalidates the token, and the peer is then refused. Every
// byte is checked.
//
// `on_step` is called after each successful step; the report has all of them. Releases everything.
// Errors: the daemon's refusals, transport failures, and kInternal with a sentence that describes the difference.
absl::Status RunFastRegisterDemo(const FastRegisterDemoOptions& options,
                                 const std::function<void(const DemoStep&)>& on_step, FastRegisterReport& report);

}  // namespace rnicd::ctl
