#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/health/probe_record.h"

namespace rnicd::health {

// The response of /readyz.
struct HealthReport {
  bool ready = false;
  std::string text;
};

// "ready" or "not ready", then a line for each adapter: "rxe0 ok", "rxe1 failing: DEVICE_FAILED since 12 s".
HealthReport HealthText(const std::vector<AdapterHealth>& adapters, Instant now);

}  // namespace rnicd::health
