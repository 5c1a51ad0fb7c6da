// rnicd with the provider of Network Direct, on the cards of tests/networkdirect_model, so that the suites of Linux
// test it through the whole daemon. Its options are the flags of a daemon on Windows.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_join.h"
#include "daemon/app/config/config.h"
#include "daemon/app/config/flag_reader.h"
#include "daemon/app/config/networkdirect_flags_windows.h"
#include "daemon/app/run.h"
#include "provider/networkdirect/nd_provider.h"

ABSL_DECLARE_FLAG(bool, restrict_paths);

namespace {

absl::StatusOr<std::unique_ptr<rnicd::provider::Provider>> MakeModel(const rnicd::app::Config& /*config*/,
                                                                     rnicd::RandomSource& random,
                                                                     rnicd::provider::AdapterEventListener on_event) {
  std::vector<std::string> errors;
  rnicd::app::FlagReader reader(errors);
  rnicd::provider::NetworkDirectOptions options = rnicd::app::ReadNetworkDirectFlags(reader);
  options.library = RNICD_NETWORKDIRECT_MODEL;
  if (!errors.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(errors, "; "));
  }
  return rnicd::provider::NetworkDirectProvider::Create(options, random, std::move(on_event));
}

constexpr std::array kCards = {rnicd::app::ProviderKind{.name = "networkdirect", .make = MakeModel}};

}  // namespace

int main(int argc, char** argv) {
  // The model lies in the build's folder.
  absl::SetFlag(&FLAGS_restrict_paths, false);
  return rnicd::app::RunDaemon(argc, argv, kCards);
}
