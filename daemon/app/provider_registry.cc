#include "daemon/app/provider_registry.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
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

void OpenFastModule(provider::VerbsOptions& verbs) {
  using provider::FastEngine;
  if (verbs.fast_engine != FastEngine::kAuto && verbs.fast_engine != FastEngine::kKernel) {
    return;
  }
  if (verbs.kernel_page_bytes != kNdkPageBytes) {
    verbs.no_fast_module = absl::StrCat("the kernel's pages have ", verbs.kernel_page_bytes,
                                        " bytes, and a fast registration lists pages of ", kNdkPageBytes);
    return;
  }
  verbs.fast_module = provider::OpenFastModule();
  if (verbs.fast_module != nullptr) {
    return;
  }
  verbs.no_fast_module = errno == ENOENT   ? "the kernel module rnicd_fr is not loaded"
                         : errno == EPROTO ? "the kernel module rnicd_fr is of another version"
                                           : absl::StrCat("cannot open /dev/rnicd_fr: ", std::strerror(errno));
}

absl::StatusOr<std::unique_ptr<provider::Provider>> MakeProvider(std::string_view name, const ProviderOptions& options,
                                                                 RandomSource& random,
                                                                 provider::AdapterEventListener on_event) {
  return Find(name)->make(options, random, std::move(on_event));
}

}  // namespace rnicd::app
