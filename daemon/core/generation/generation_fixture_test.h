#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/generation/inherited.h"
#include "daemon/core/generation/retirement.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {

// One generation of the daemon, with what it is for the generations before and after it.
struct Generation : World {
  explicit Generation(const WorldOptions& options = {}) : World(options) {}

  Inherited inherited{node};
  Retirement retirement{node, registry};
};

inline uint64_t HeldOf(const HeldUse& use, Resource resource) { return use.held[static_cast<size_t>(resource)]; }

// The share of this tenant, by name; empty for the node.
inline std::optional<HeldUse> ShareOf(const std::vector<HeldUse>& held, const std::string& tenant) {
  const auto found = std::find_if(held.begin(), held.end(), [&](const HeldUse& use) { return use.tenant == tenant; });
  return found == held.end() ? std::nullopt : std::optional(*found);
}

inline void IgnoreGone(const ProcessKey& /*process*/) {}

// Carries all changes to the newer generation, and its answers back.
inline void Exchange(Retirement& older, Inherited& newer) {
  const Retirement::Changes changes = older.Tick();
  for (const HeldUse& shrunk : changes.shrunk) {
    newer.Shrink(shrunk);
  }
  for (const HeldUse& wanted : changes.wanted) {
    older.Granted(newer.Grow(wanted));
  }
}

}  // namespace rnicd::core
