#include "daemon/health/health_text.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/error_reason.h"
#include "base/status.h"
#include "daemon/health/prober.h"

namespace rnicd::health {

HealthReport ReadinessText(const std::vector<AdapterHealth>& adapters, const ServingVerdict& serving, Instant now) {
  HealthReport report;
  report.good = AnyHealthy(adapters) && serving.serves();
  report.text = absl::StrCat(report.good ? "ready\n" : "not ready\n", serving.Text());
  for (const AdapterHealth& adapter : adapters) {
    if (adapter.healthy) {
      absl::StrAppend(&report.text, adapter.adapter, " ok\n");
      continue;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - adapter.since).count();
    const std::string reason(RowOf(ErrorInfoOf(adapter.status).reason).name);
    absl::StrAppend(&report.text, adapter.adapter, " failing: ", reason, " since ", seconds, " s\n");
  }
  return report;
}

HealthReport LivenessText(const ServingVerdict& serving) {
  return {.good = serving.live(), .text = serving.live() ? "ok\n" : absl::StrCat("hangs\n", serving.Text())};
}

}  // namespace rnicd::health
