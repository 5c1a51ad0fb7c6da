#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string HealthText(bool ready) { return ready ? "ready\n" : "not ready\n"; }

Json HealthJson(bool ready) { return {{"ready", ready}}; }

std::string LiveText(bool live) { return live ? "alive\n" : "hangs\n"; }

Json LiveJson(bool live) { return {{"live", live}}; }

}  // namespace rnicd::ctl
