#include "client/ctl/trials/pingpong_sides.h"

namespace rnicd::ctl {

// Cards on Windows reach queue pairs of the same daemon only, so there is no other host to talk to.
absl::Status RunPingpong(const PingpongOptions& /*options*/, const std::function<void(const DemoStep&)>& /*on_step*/,
                         PingpongReport& /*report*/) {
  return absl::UnimplementedError("pingpong is for Linux only");
}

}  // namespace rnicd::ctl
