#include "tests/support/process/tested_provider.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/ndk/adapter_info.h"

namespace rnicd::test {
namespace {

constexpr std::string_view kProviderFlag = "--provider=";

// Properties of a kind of adapter that tests depend on.
struct Kind {
  std::string_view name;
  std::string_view flag_prefix;
  const char* adapter;
  const char* other_adapter;
  uint32_t adapter_flags;
  uint64_t descriptors_of_an_open_adapter;
};

constexpr uint32_t kCommonFlags =
    kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback;

constexpr std::array kKinds = {
    Kind{.name = "soft",
         .flag_prefix = "--soft_",
         .adapter = "soft0",
         .other_adapter = "soft1",
         .adapter_flags = kCommonFlags | kAdapterFlagInOrderDma,
         .descriptors_of_an_open_adapter = 0},
    // The adapters that tests/vm creates.
    Kind{.name = "verbs",
         .flag_prefix = "--verbs_",
         .adapter = "rxa",
         .other_adapter = "rxb",
         .adapter_flags = kCommonFlags,
         // The command fd, the asynchronous event fd and the completion channel.
         .descriptors_of_an_open_adapter = 3},
    // The cards of tests/networkdirect_model.
    Kind{.name = "networkdirect",
         .flag_prefix = "--networkdirect_",
         .adapter = "nd-10.83.0.5",
         .other_adapter = "nd-10.83.0.6",
         .adapter_flags = kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback,
         .descriptors_of_an_open_adapter = 0},
};

std::string FromEnvironment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

const Kind& KindUnderTest() {
  static const Kind& kind = []() -> const Kind& {
    const std::string name = FromEnvironment("RNICD_TEST_PROVIDER", "soft");
    const auto* const found =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& row) { return row.name == name; });
    if (found == kKinds.end()) {
      std::fprintf(stderr, "RNICD_TEST_PROVIDER must be soft, verbs or networkdirect, not \"%s\"\n", name.c_str());
      std::exit(1);
    }
    return *found;
  }();
  return kind;
}

// True if the flag belongs to a provider other than this one.
bool IsForAnother(const std::string& flag, std::string_view provider) {
  return std::any_of(kKinds.begin(), kKinds.end(),
                     [&](const Kind& kind) { return kind.name != provider && flag.starts_with(kind.flag_prefix); });
}

}  // namespace

std::string ProviderUnderTest() { return std::string(KindUnderTest().name); }

std::vector<std::string> ProvidersThatCanBeTested() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    names.emplace_back(kind.name);
  }
  return names;
}

std::string ProviderFlag(std::string_view name, uint64_t value) {
  return std::string(KindUnderTest().flag_prefix) + std::string(name) + "=" + std::to_string(value);
}

std::vector<std::string> DaemonFlagsOfTheEnvironment(const std::vector<std::string>& flags) {
  std::vector<std::string> result;
  std::string provider = ProviderUnderTest();
  const auto named =
      std::find_if(flags.rbegin(), flags.rend(), [](const auto& flag) { return flag.starts_with(kProviderFlag); });
  if (named != flags.rend()) {
    provider = named->substr(kProviderFlag.size());
  } else {
    result.push_back(std::string(kProviderFlag) + provider);
  }
  std::istringstream words(FromEnvironment("RNICD_TEST_DAEMON_FLAGS", ""));
  for (std::string flag; words >> flag;) {
    if (!IsForAnother(flag, provider)) {
      result.push_back(flag);
    }
  }
  return result;
}

std::string AdapterUnderTest() { return FromEnvironment("RNICD_TEST_ADAPTER", KindUnderTest().adapter); }

std::string OtherAdapterUnderTest() {
  return FromEnvironment("RNICD_TEST_OTHER_ADAPTER", KindUnderTest().other_adapter);
}

std::vector<std::string> TwoAdapterFlags() {
  return ProviderUnderTest() == "soft" ? std::vector<std::string>{"--soft_adapters=2"} : std::vector<std::string>{};
}

std::vector<std::string> OneAdapterFlags() {
  return ProviderUnderTest() == "verbs" ? std::vector<std::string>{"--verbs_devices=" + AdapterUnderTest()}
                                        : std::vector<std::string>{};
}

uint32_t AdapterFlagsUnderTest() { return KindUnderTest().adapter_flags; }

uint64_t DescriptorsOfAnOpenAdapter() { return KindUnderTest().descriptors_of_an_open_adapter; }

}  // namespace rnicd::test
