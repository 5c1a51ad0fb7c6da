#include "daemon/health/health_text.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/error_reason.h"
#include "base/status.h"
#include "daemon/health/prober.h"

namespace rnicd::health {

HealthReport HealthText(const std::vector<AdapterHealth>& adapters, Instant now) {
  HealthReport report;
  report.ready = AnyHealthy(adapters);
  report.text = report.ready ? "ready\n" : "not ready\n";
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

}  // namespace rnicd::health
