#include "daemon/app/config/provider_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "provider/decorator/held_registrations.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::app {
namespace {

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeSoft(const Config& config, RandomSource& random,
                                                             provider::AdapterEventListener /*on_event*/) {
  return std::make_unique<provider::SoftProvider>(config.soft, random);
}

std::vector<ProviderKind> KindsWith(std::span<const ProviderKind> cards) {
  std::vector<ProviderKind> kinds = {{.name = "soft", .make = MakeSoft}};
  kinds.insert(kinds.end(), cards.begin(), cards.end());
  return kinds;
}

}  // namespace

bool IsKnownProvider(std::string_view name, std::span<const ProviderKind> cards) {
  const std::vector<ProviderKind> kinds = KindsWith(cards);
  return std::any_of(kinds.begin(), kinds.end(), [name](const ProviderKind& kind) { return kind.name == name; });
}

std::string KnownProviders(std::span<const ProviderKind> cards) {
  return absl::StrJoin(KindsWith(cards), ", ",
                       [](std::string* text, const ProviderKind& kind) { text->append(kind.name); });
}

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeProvider(const Config& config, RandomSource& random,
                                                                 provider::AdapterEventListener on_event) {
  const std::vector<ProviderKind> kinds = KindsWith(config.cards);
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&config](const ProviderKind& kind) { return kind.name == config.provider; });
  auto provider = found->make(config, random, std::move(on_event));
  if (provider.ok() && config.hold_registrations != nullptr) {
    return std::make_unique<provider::HeldProvider>(*std::move(provider), config.hold_registrations);
  }
  return provider;
}

}  // namespace rnicd::app
