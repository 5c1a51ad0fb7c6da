#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

struct FastRegisterDemoOptions {
  std::string socket_dir;
  // Of both sessions; as ClientOptions::grant.
  std::string grant;
  // Of 4 KiB; at least 1.
  uint64_t pages = 0;
  // Which order the pages are shuffled into, and what is written into them.
  uint32_t seed = 0;
};

// Two sessions of this process: the owner registers shuffled pages of its memory by one work request, the peer writes
// and reads them through the one token, the owner takes the token back, the peer is refused. Every byte is checked.
//
// `on_step` is called after each step that went as it should; the report has them all. Gives everything back.
// Errors: the daemon's refusals, transport failures, and kInternal with a sentence that says what differed.
absl::Status RunFastRegisterDemo(const FastRegisterDemoOptions& options,
                                 const std::function<void(const DemoStep&)>& on_step, FastRegisterReport& report);

}  // namespace rnicd::ctl
