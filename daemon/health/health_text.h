#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/health/probe_record.h"
#include "daemon/health/serving_check.h"

namespace rnicd::health {

// The response of /readyz or /healthz.
struct HealthReport {
  bool good = false;
  std::string text;
};

// For /readyz: "ready" or "not ready", then a line for each problem of the daemon, as in ServingVerdict, and for each
// adapter: "rxe0 ok", "rxe1 failing: DEVICE_FAILED since 12 s".
HealthReport ReadinessText(const std::vector<AdapterHealth>& adapters, const ServingVerdict& serving, Instant now);

// For /healthz: "ok", or the parts that hang. Neither a card nor a part that answers makes it bad: a restart repairs
// nothing there, and ends all sessions.
HealthReport LivenessText(const ServingVerdict& serving);

}  // namespace rnicd::health
