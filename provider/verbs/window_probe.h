#pragma once

#include <memory>

#include "provider/verbs/verbs_context.h"

namespace rnicd::provider {

// What a card does with a write that passes the end of a type 2 memory window but not of the region around it.
enum class WindowVerdict : uint8_t {
  // Refuses it, as it must.
  kBounded,
  // Lets it through: a window there is no wall.
  kUnbounded,
  // Does not even do what a window must allow, or has none.
  kUnusable,
};

// Finds out by trying, with two queue pairs of the port connected to each other; takes some milliseconds.
WindowVerdict ProbeWindows(VerbsContext& context);

}  // namespace rnicd::provider
