#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "provider/api/device.h"

namespace rnicd::provider {

struct SoftOptions {
  // Cards named soft0, soft1, ...; at least 1.
  uint32_t adapters = 1;
  // Bytes; what the cards report as max_registration_size.
  uint64_t max_registration_bytes = uint64_t{1} << 40;
  // Registrations a card has room for; 0 means as many as there are keys (8,388,608).
  uint64_t max_regions = 0;
  // How long each registration takes: imitates a slow card.
  std::chrono::microseconds register_delay{0};
};

class SoftNic;

// RNICs in software, inside the daemon: the default where there is no card, and the model that the conformance suite
// compares cards with. It never does what a card cannot. README.md says what it models and what not.
class SoftProvider final : public Provider {
 public:
  // `random` outlives the provider.
  SoftProvider(const SoftOptions& options, RandomSource& random);
  ~SoftProvider() override;

  std::string_view name() const override { return "soft"; }
  std::vector<AdapterDescription> ListAdapters() const override;
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override;

  // The card of that name; null when there is none. For tests that act as a peer.
  std::shared_ptr<SoftNic> FindNic(std::string_view adapter_name) const;

 private:
  std::vector<std::shared_ptr<SoftNic>> nics_;
};

}  // namespace rnicd::provider
