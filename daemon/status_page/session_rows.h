#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "daemon/core/session/session_registry.h"

namespace rnicd::status_page {

using Json = nlohmann::ordered_json;

// Lists with "rows" and the number of "more" entries.
struct SessionRows {
  Json sessions;
  Json regions;
  // Listeners and connectors, without the private data.
  Json ends;
};

// The sessions with the lowest ids, and what these hold; when not all fit, each session shows some of its rows before
// any shows all.
SessionRows ReadSessions(const core::SessionRegistry& registry, Instant now);

}  // namespace rnicd::status_page
