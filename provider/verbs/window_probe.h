#pragma once

#include <memory>

#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

// Behaviour of a card on a write past the end of a type 2 memory window but within the region around it.
enum class WindowSupport : uint8_t {
  // Refuses the write, as it must.
  kBounded,
  // Executes the write: windows of this card provide no isolation.
  kUnbounded,
  // Fails accesses that a window must allow, or has no windows.
  kUnusable,
};

// Tests the card with two queue pairs of the port connected to each other; takes a few milliseconds.
WindowSupport ProbeWindows(VerbsContext& context);

}  // namespace rnicd::provider
