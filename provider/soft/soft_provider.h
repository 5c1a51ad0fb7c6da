#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ndk/adapter_info.h"
#include "base/ndk/network_address.h"
#include "base/secrets/random.h"
#include "provider/api/device.h"
#include "provider/soft/net/soft_network.h"
#include "provider/soft/net/soft_worker.h"

namespace rnicd::provider {

struct SoftOptions {
  // Cards named soft0, soft1, ...; at least 1.
  uint32_t adapters = 1;
  // Those of soft0, soft1, ...: different ones. Cards without one have 198.18.0.1 for soft0, 198.18.0.2 for soft1, and
  // so on.
  std::vector<IpAddress> addresses;
  // max_registration_size that the cards report, in bytes.
  uint64_t max_registration_bytes = uint64_t{1} << 40;
  // Maximum number of registrations on a card; 0 means the number of keys (8,388,608).
  uint64_t max_regions = 0;
  // Maximum number of 4 KiB pages that a fast-register region may be initialized for.
  uint32_t max_fast_register_pages = 65536;
  // Duration of each read from its start until its bytes land; simulates a long wire.
  std::chrono::microseconds read_delay{0};
  // Reads that are over wait as long as this returns true, with a read_delay between two questions; null: they land.
  std::function<bool()> hold_reads;
  // Leads to the cards of other daemons; null: there are none.
  std::shared_ptr<SoftNetwork> network;
  // NDK_ADAPTER_FLAG_ bits that the cards report and obey.
  uint32_t adapter_flags = kAdapterFlagInOrderDma | kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate |
                           kAdapterFlagCqResize | kAdapterFlagLoopback;
};

// The address of each card.
std::vector<IpAddress> AddressesOf(const SoftOptions& options);

class SoftFabric;
class SoftNic;

// RNICs in software, inside the daemon: the default where there is no card, and the model that the conformance suite
// compares cards with. It never does anything a card cannot. README.md lists what it models and what it does not.
class SoftProvider final : public Provider {
 public:
  // `random` outlives the provider. If `worker` is null, the provider creates one with its own thread.
  SoftProvider(const SoftOptions& options, RandomSource& random, std::unique_ptr<SoftWorker> worker = nullptr);
  ~SoftProvider() override;

  std::string_view name() const override { return "soft"; }
  std::vector<AdapterDescription> ListAdapters() const override;
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override;
  FastRegistrationCounts fast_registrations() const override;

 private:
  // Null when no card has that name.
  std::shared_ptr<SoftNic> FindNic(std::string_view adapter_name) const;

  const std::shared_ptr<SoftFabric> fabric_;
  std::vector<std::shared_ptr<SoftNic>> nics_;
};

}  // namespace rnicd::provider
