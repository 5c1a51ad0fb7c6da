#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ndk_adapter_info.h"
#include "provider/verbs/gid_choice.h"

namespace rnicd::provider {

// How fast registrations and windows are carried out.
enum class FastEngine : uint8_t {
  // Fast registrations by registrations of the card; windows by windows of the card where the start-up probe found that
  // it checks their bounds, else by registrations too.
  kAuto,
  // Both by registrations.
  kRegistration,
  // Both by windows. Refuses a card that does not check their bounds, unless allow_unbounded_windows.
  kWindow,
};

// Something a card said by itself.
struct DeviceEvent {
  std::string adapter;
  // "port up", "port down", "address changed", "removed"; "left out" of a card that cannot be used, whose name then
  // comes with the reason.
  std::string_view what;
};

struct VerbsOptions {
  // Names of cards to own ("mlx5_0"); empty: all that can do reliable connections.
  std::vector<std::string> devices;
  GidRule gid;
  FastEngine fast_engine = FastEngine::kAuto;
  // Lets kWindow use windows that give a peer the whole region around them. For tests of a card's life cycle only.
  bool allow_unbounded_windows = false;
  // Bytes; the cards' own limit when that is lower.
  uint64_t max_registration_bytes = uint64_t{1} << 40;
  // Registrations of one card; 0: as many as it has room for.
  uint64_t max_regions = 0;
  // Each may be a mapping of its own for a moment, of which a process may have 65,530 (vm.max_map_count).
  uint32_t max_fast_register_pages = 32768;
  // NDK_ADAPTER_FLAG_ bits that cards report and obey, of those they can have.
  uint32_t adapter_flags =
      kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback;
  // The IB local ACK timeout, 4.096 us times 2 to this power, 1 to 31; a packet is sent again six times.
  uint8_t ack_timeout = 16;
  // How often an idle connection is probed, and a queue pair asked whether it still works.
  std::chrono::milliseconds probe_interval{1000};
  // How long a card may take to bring back what a failed queue pair still has, or to answer the start-up probe, before
  // it is not waited for any more.
  std::chrono::milliseconds card_timeout{5000};
  // For tests: each registration takes so much longer.
  std::chrono::microseconds register_delay{0};
  // Called on the provider's own thread; must be quick.
  std::function<void(const DeviceEvent&)> on_event = [](const DeviceEvent&) {};
};

}  // namespace rnicd::provider
