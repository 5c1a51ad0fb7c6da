// The older generations that still serve sessions.

#include <chrono>
#include <string>

#include "daemon/metrics/state_parts.h"

namespace rnicd::metrics {

void AddGenerations(const Sources& sources, Families& families) {
  const std::vector<core::OlderGeneration> older = sources.older_generations();
  families.Add(Metric::kGenerations, static_cast<double>(1 + older.size()));
  families.Declare(Metric::kGenerationSessions);
  families.Declare(Metric::kGenerationDeadline);
  const Instant now = sources.node.clock.Now();
  for (const core::OlderGeneration& each : older) {
    const std::string generation = std::to_string(each.generation);
    const std::chrono::duration<double> left = std::max(each.deadline - now, Instant::duration::zero());
    families.Add(Metric::kGenerationSessions, {generation}, static_cast<double>(each.sessions));
    families.Add(Metric::kGenerationDeadline, {generation}, left.count());
  }
}

}  // namespace rnicd::metrics
