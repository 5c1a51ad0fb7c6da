#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string HealthText(bool ready) { return ready ? "ready\n" : "not ready\n"; }

Json HealthJson(bool ready) { return {{"ready", ready}}; }

}  // namespace rnicd::ctl
