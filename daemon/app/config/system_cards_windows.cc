#include <array>
#include <utility>

#include "daemon/app/config/config.h"
#include "daemon/app/config/system_config_windows.h"
#include "provider/networkdirect/nd_provider.h"

namespace rnicd::app {
namespace {

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeNetworkDirect(const Config& config, RandomSource& random,
                                                                      provider::AdapterEventListener on_event) {
  return provider::NetworkDirectProvider::Create(config.system->network_direct, random, std::move(on_event));
}

constexpr std::array kCards = {ProviderKind{.name = "networkdirect", .make = MakeNetworkDirect}};

}  // namespace

std::span<const ProviderKind> SystemCards() { return kCards; }

}  // namespace rnicd::app
