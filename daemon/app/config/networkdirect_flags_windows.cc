// Nothing here depends on Windows; the daemon of Linux has no such cards.
#include "daemon/app/config/networkdirect_flags_windows.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/ndk/adapter_info.h"

ABSL_FLAG(std::string, networkdirect_library, "",
          "networkdirect provider: absolute path of the library of a card's manufacturer; empty: all that the system "
          "lists");
ABSL_FLAG(std::string, networkdirect_fast_engine, "auto",
          "networkdirect provider: how fast registrations are carried out: auto (a memory window where one can express "
          "the registration, otherwise a registration) or registration");
ABSL_FLAG(int64_t, networkdirect_max_registration_bytes, int64_t{1} << 40,
          "networkdirect provider: the largest registration, unless the card's own limit is lower; 4096 or more");
ABSL_FLAG(int64_t, networkdirect_max_regions, 0,
          "networkdirect provider: memory regions of one card, of which a registration takes one for each piece of its "
          "memory; 0: as many as the card has room for");
ABSL_FLAG(std::string, networkdirect_adapter_flags, "0x10111",
          "networkdirect provider: NDK_ADAPTER_FLAG_ bits that adapters report and obey, where the card has them: 0x1 "
          "in-order DMA, 0x10 read with local invalidate, 0x100 CQ resize, 0x10000 loopback");

namespace rnicd::app {
namespace {

constexpr uint32_t kFlagsOfCards =
    kAdapterFlagInOrderDma | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback;

provider::NdFastEngine ReadFastEngine(FlagReader& reader) {
  const std::string text = absl::GetFlag(FLAGS_networkdirect_fast_engine);
  if (text != "auto" && text != "registration") {
    reader.AddError("networkdirect_fast_engine", absl::StrCat("must be auto or registration, not \"", text, "\""));
  }
  return text == "registration" ? provider::NdFastEngine::kRegistration : provider::NdFastEngine::kAuto;
}

}  // namespace

provider::NetworkDirectOptions ReadNetworkDirectFlags(FlagReader& reader) {
  provider::NetworkDirectOptions options;
  options.library = reader.AbsolutePath(FLAGS_networkdirect_library);
  options.fast_engine = ReadFastEngine(reader);
  options.max_registration_bytes =
      reader.Number(FLAGS_networkdirect_max_registration_bytes, kRegistrationBytesMin, kUnbounded);
  options.max_regions = reader.Limit(FLAGS_networkdirect_max_regions);
  options.adapter_flags = reader.Bits(FLAGS_networkdirect_adapter_flags, kFlagsOfCards);
  return options;
}

}  // namespace rnicd::app
