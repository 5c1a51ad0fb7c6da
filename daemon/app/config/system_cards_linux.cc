#include <array>
#include <utility>

#include "daemon/app/config/config.h"
#include "daemon/app/config/system_config_linux.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::app {
namespace {

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeVerbs(const Config& config, RandomSource& random,
                                                              provider::AdapterEventListener on_event) {
  return provider::VerbsProvider::Create(config.system->verbs, random, provider::RdmaCore(), std::move(on_event),
                                         &provider::RdmaCmLibrary());
}

constexpr std::array kCards = {ProviderKind{.name = "verbs", .make = MakeVerbs}};

}  // namespace

std::span<const ProviderKind> SystemCards() { return kCards; }

}  // namespace rnicd::app
