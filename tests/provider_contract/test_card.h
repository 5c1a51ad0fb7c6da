#pragma once

#include <cstdint>
#include <memory>

#include "tests/provider_contract/tested_card.h"

namespace rnicd::provider {

// Behaviour of the test card. What it does to each request is drawn from the seed; chances are in 1000.
struct TestCardOptions {
  uint32_t seed = 1;
  // A request is executed later: a read behind later requests, any other before them. Failing takes time, too.
  uint32_t delays = 500;
  // Prepare, PostReceive and Connect refuse.
  uint32_t refusals = 0;
  // Begin and Conclude fail the request.
  uint32_t failures = 0;
};

// A card made for tests of the engine: a soft card that takes every liberty that EngineCard allows.
std::unique_ptr<TestedCard> MakeTestCard(const TestCardOptions& options);

}  // namespace rnicd::provider
