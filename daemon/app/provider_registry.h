#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/soft/soft_provider.h"
#include "provider/verbs/verbs_options.h"

namespace rnicd::app {

// The kinds of hardware this build can own. A new provider is a new row in provider_registry.cc.
bool IsKnownProvider(std::string_view name);
// "soft, verbs", for messages.
std::string KnownProviders();

// The options of every kind; only those of the selected one count.
struct ProviderOptions {
  provider::SoftOptions soft;
  provider::VerbsOptions verbs;
};

// Opens the kernel's module for fast registrations if the options of verbs may use it, and the kernel's pages are those
// of NDK, of which the module makes lists. Needs privileges that the sandbox takes away. What is not there is not an
// error: MakeProvider judges that.
void OpenFastModule(provider::VerbsOptions& verbs);

// `name` is a known provider. `random` and what `on_event` refers to outlive the provider. The soft card has no events.
// Errors: those of the provider; the message is for the operator.
absl::StatusOr<std::unique_ptr<provider::Provider>> MakeProvider(std::string_view name, const ProviderOptions& options,
                                                                 RandomSource& random,
                                                                 provider::AdapterEventListener on_event);

}  // namespace rnicd::app
