#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ndk/adapter_info.h"
#include "base/units.h"
#include "provider/verbs/card/fast_module.h"
#include "provider/verbs/card/gid_choice.h"

namespace rnicd::provider {

// Method of fast registrations and windows.
enum class FastEngine : uint8_t {
  // Fast registrations are requests of the kernel if its module is there and the start-up probe passed, otherwise
  // registrations of the card; windows are windows of the card if a probe found that it checks their bounds, otherwise
  // registrations too.
  kAuto,
  // Both are registrations.
  kRegistration,
  // As kAuto, but refuses a card whose fast registrations the kernel cannot make.
  kKernel,
  // Both are windows. Refuses a card that does not check their bounds, unless allow_unbounded_windows is set.
  kWindow,
};

struct VerbsOptions {
  // Names of cards to own ("mlx5_0"); empty means all cards with reliable connections.
  std::vector<std::string> devices;
  GidRule gid;
  FastEngine fast_engine = FastEngine::kAuto;
  // The kernel's module for fast registrations; null: there is none, for the reason in the next field.
  std::shared_ptr<FastModule> fast_module;
  std::string no_fast_module = "there is no kernel module";
  // Bytes of the kernel's pages (Os::page_bytes), of which a card is given whole ones.
  uint64_t kernel_page_bytes = kNdkPageBytes;
  // Lets kWindow use windows that expose the whole region around them to a peer. For tests of a card's life cycle only.
  bool allow_unbounded_windows = false;
  // Maximum size of a registration, in bytes; the card's own limit applies if it is lower.
  uint64_t max_registration_bytes = uint64_t{1} << 40;
  // Maximum number of registrations on one card; 0 means the card's own limit.
  uint64_t max_regions = 0;
  // Maximum pages of a fast registration. Each page may briefly need its own mapping, of which a process may have
  // 65,530 (vm.max_map_count).
  uint32_t max_fast_register_pages = 32768;
  // NDK_ADAPTER_FLAG_ bits that cards report and obey, limited to those the provider can support.
  uint32_t adapter_flags =
      kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback;
  // The IB local ACK timeout, 4.096 us times 2 to this power, 1 to 31; a packet is retransmitted six times.
  uint8_t ack_timeout = 16;
  // Interval at which an idle connection is probed and the state of a queue pair is checked.
  std::chrono::milliseconds probe_interval{1000};
  // Interval at which the provider looks for cards that have come or gone unheard, and the time that a card which comes
  // has to get an address and a link before it is tried.
  std::chrono::milliseconds look_interval{10000};
  // Timeout for a card to return the outstanding requests of a failed queue pair, or to complete the start-up probe.
  std::chrono::milliseconds card_timeout{5000};
};

}  // namespace rnicd::provider
