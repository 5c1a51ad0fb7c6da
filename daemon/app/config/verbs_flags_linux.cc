#include "daemon/app/config/verbs_flags_linux.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/system/os.h"

ABSL_FLAG(std::string, verbs_devices, "",
          "verbs provider: names of the cards to own, between commas (mlx5_0,mlx5_1); empty: all that can do reliable "
          "connections");
ABSL_FLAG(std::string, verbs_gid, "auto",
          "verbs provider: which of a port's addresses queue pairs use: auto (RoCE v2 before v1, IPv4 before global "
          "IPv6 before link-local), ipv4, ipv6, link-local, or one address");
ABSL_FLAG(
    std::string, verbs_fast_engine, "auto",
    "verbs provider: how fast registrations and windows are carried out: kernel (by the kernel module "
    "rnicd_fr; refuses a card that fails its probe), registration (works on every card), "
    "window (memory windows; refuses a card that does not check their bounds; a fast registration then works through "
    "the queue pair that executed it only), auto (by the kernel where its module is there and the "
    "probe passes, else registration; windows by windows where the card is seen to check them)");
ABSL_FLAG(bool, verbs_allow_unbounded_windows, false,
          "verbs provider: DANGEROUS, for tests only. Lets --verbs_fast_engine=window use a card that does not check "
          "the bounds of windows: a peer with the token of one window can then read and write everything around it "
          "that was registered with it, not only what it was given");
ABSL_FLAG(int64_t, verbs_max_registration_bytes, int64_t{1} << 40,
          "verbs provider: the largest registration, unless the card's own limit is lower; 4096 or more");
ABSL_FLAG(int64_t, verbs_max_regions, 0,
          "verbs provider: registrations of one card; 0: as many as the card has room for");
ABSL_FLAG(int64_t, verbs_max_fast_register_pages, 32768,
          "verbs provider: the most pages a fast-register region can be made ready for; 16 or more");
ABSL_FLAG(std::string, verbs_adapter_flags, "0x10112",
          "verbs provider: NDK_ADAPTER_FLAG_ bits that adapters report and obey: 0x2 read sink needs no right, 0x10 "
          "read with local invalidate, 0x100 CQ resize, 0x10000 loopback");
ABSL_FLAG(int64_t, verbs_ack_timeout, 16,
          "verbs provider: how long a queue pair waits for the peer's acknowledgement before it sends again, six "
          "times: 4.096 us times 2 to this power; 1 to 31");
ABSL_FLAG(int64_t, verbs_probe_interval_ms, 1000,
          "verbs provider: how often an idle connection is probed, so that a silent peer is noticed; 10 to 3600000");

namespace rnicd::app {
namespace {

provider::GidRule ReadGid(FlagReader& reader) {
  const std::string text = absl::GetFlag(FLAGS_verbs_gid);
  const std::optional<provider::GidRule> rule = provider::ParseGidRule(text);
  if (!rule.has_value()) {
    reader.AddError("verbs_gid", absl::StrCat("must be auto, ipv4, ipv6, link-local or an IPv4 or IPv6 address, not \"",
                                              text, "\""));
  }
  return rule.value_or(provider::GidRule());
}

provider::FastEngine ReadFastEngine(FlagReader& reader) {
  const std::string text = absl::GetFlag(FLAGS_verbs_fast_engine);
  if (text == "registration") {
    return provider::FastEngine::kRegistration;
  }
  if (text == "window") {
    return provider::FastEngine::kWindow;
  }
  if (text == "kernel") {
    return provider::FastEngine::kKernel;
  }
  if (text != "auto") {
    reader.AddError("verbs_fast_engine",
                    absl::StrCat("must be auto, kernel, registration or window, not \"", text, "\""));
  }
  return provider::FastEngine::kAuto;
}

}  // namespace

provider::VerbsOptions ReadVerbsFlags(FlagReader& reader) {
  provider::VerbsOptions options;
  options.devices = reader.Names(FLAGS_verbs_devices);
  options.gid = ReadGid(reader);
  options.fast_engine = ReadFastEngine(reader);
  options.allow_unbounded_windows = absl::GetFlag(FLAGS_verbs_allow_unbounded_windows);
  options.max_registration_bytes = reader.Number(FLAGS_verbs_max_registration_bytes, kRegistrationBytesMin, kUnbounded);
  options.max_regions = reader.Limit(FLAGS_verbs_max_regions);
  options.max_fast_register_pages =
      static_cast<uint32_t>(reader.Number(FLAGS_verbs_max_fast_register_pages, kFastRegisterPagesMin, UINT32_MAX));
  options.adapter_flags = reader.Bits(FLAGS_verbs_adapter_flags, provider::VerbsOptions().adapter_flags);
  options.ack_timeout = static_cast<uint8_t>(reader.Number(FLAGS_verbs_ack_timeout, 1, 31));
  options.probe_interval = reader.Milliseconds(FLAGS_verbs_probe_interval_ms, 10, kOneHourMs);
  options.kernel_page_bytes = SystemOs().page_bytes();
  return options;
}

}  // namespace rnicd::app
