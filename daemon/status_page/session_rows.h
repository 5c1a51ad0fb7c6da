#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "daemon/core/session_registry.h"

namespace rnicd::status_page {

using Json = nlohmann::ordered_json;

// Each with "rows" and how many "more" there are.
struct SessionRows {
  Json sessions;
  Json regions;
};

// The sessions with the lowest ids, and regions of these; with little room each session shows some of its own before
// any shows all.
SessionRows ReadSessions(const core::SessionRegistry& registry, Instant now);

}  // namespace rnicd::status_page
