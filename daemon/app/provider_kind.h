#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"

namespace rnicd::app {

struct Config;

// A kind of hardware that a daemon can own.
struct ProviderKind {
  // Value of --provider.
  std::string_view name;
  absl::StatusOr<std::unique_ptr<provider::Provider>> (*make)(const Config& config, RandomSource& random,
                                                              provider::AdapterEventListener on_event);
};

// The cards that this system has. A new provider is a new line there. They live as long as the program.
std::span<const ProviderKind> SystemCards();

}  // namespace rnicd::app
