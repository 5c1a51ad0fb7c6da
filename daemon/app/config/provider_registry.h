#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/secrets/random.h"
#include "daemon/app/config/config.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"

namespace rnicd::app {

// The card in software and `cards`.
bool IsKnownProvider(std::string_view name, std::span<const ProviderKind> cards);
// "soft, verbs", for messages.
std::string KnownProviders(std::span<const ProviderKind> cards);

// The provider that the configuration names, which is a known one. `random` and what `on_event` refers to outlive the
// provider. The card in software has no events.
// Errors: those of the provider; the message is for the operator.
absl::StatusOr<std::unique_ptr<provider::Provider>> MakeProvider(const Config& config, RandomSource& random,
                                                                 provider::AdapterEventListener on_event);

}  // namespace rnicd::app
