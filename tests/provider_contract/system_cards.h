#pragma once

#include <chrono>
#include <vector>

#include "tests/provider_contract/tested_card.h"

namespace rnicd::provider {

// One for each provider that only this operating system has. `probe_interval`: between probes of a connection.
std::vector<CardKind> SystemCardKinds(std::chrono::milliseconds probe_interval);

}  // namespace rnicd::provider
