#include "daemon/app/provider_registry.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"

namespace rnicd::app {
namespace {

struct Row {
  const char* name;
  std::unique_ptr<provider::Provider> (*make)(const ProviderOptions& options, RandomSource& random);
};

std::unique_ptr<provider::Provider> MakeSoft(const ProviderOptions& options, RandomSource& random) {
  return std::make_unique<provider::SoftProvider>(options.soft, random);
}

constexpr std::array kRows = {Row{"soft", &MakeSoft}};

const Row* Find(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [name](const Row& row) { return row.name == name; });
  return found != kRows.end() ? &*found : nullptr;
}

}  // namespace

bool IsKnownProvider(std::string_view name) { return Find(name) != nullptr; }

std::string KnownProviders() {
  return absl::StrJoin(kRows, ", ", [](std::string* text, const Row& row) { text->append(row.name); });
}

std::unique_ptr<provider::Provider> MakeProvider(std::string_view name, const ProviderOptions& options,
                                                 RandomSource& random) {
  return Find(name)->make(options, random);
}

}  // namespace rnicd::app
