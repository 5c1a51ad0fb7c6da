#include "daemon/app/provider_registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_join.h"
#include "provider/verbs/verbs_api.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::app {
namespace {

using MadeProvider = absl::StatusOr<std::unique_ptr<provider::Provider>>;

struct Row {
  const char* name;
  MadeProvider (*make)(const ProviderOptions& options, RandomSource& random, provider::AdapterEventListener on_event);
};

MadeProvider MakeSoft(const ProviderOptions& options, RandomSource& random,
                      provider::AdapterEventListener /*on_event*/) {
  return std::make_unique<provider::SoftProvider>(options.soft, random);
}

MadeProvider MakeVerbs(const ProviderOptions& options, RandomSource& random, provider::AdapterEventListener on_event) {
  return provider::VerbsProvider::Create(options.verbs, random, provider::RdmaCore(), std::move(on_event));
}

constexpr std::array kRows = {Row{"soft", &MakeSoft}, Row{"verbs", &MakeVerbs}};

const Row* Find(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [name](const Row& row) { return row.name == name; });
  return found != kRows.end() ? &*found : nullptr;
}

}  // namespace

bool IsKnownProvider(std::string_view name) { return Find(name) != nullptr; }

std::string KnownProviders() {
  return absl::StrJoin(kRows, ", ", [](std::string* text, const Row& row) { text->append(row.name); });
}

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeProvider(std::string_view name, const ProviderOptions& options,
                                                                 RandomSource& random,
                                                                 provider::AdapterEventListener on_event) {
  return Find(name)->make(options, random, std::move(on_event));
}

}  // namespace rnicd::app
