#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "provider/api/device.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::app {

// The kinds of hardware this build can own. A new provider is a new row in provider_registry.cc.
bool IsKnownProvider(std::string_view name);
// "soft", for messages.
std::string KnownProviders();

struct ProviderOptions {
  provider::SoftOptions soft;
};

// `name` is a known one. `random` outlives the provider.
std::unique_ptr<provider::Provider> MakeProvider(std::string_view name, const ProviderOptions& options,
                                                 RandomSource& random);

}  // namespace rnicd::app
