#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/secrets/random.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/networkdirect/card/nd_library.h"
#include "provider/networkdirect/card/nd_options.h"

namespace rnicd::provider {

struct NdNode;
class NdDevice;

// Cards with a provider of Network Direct version 2. README.md lists what is done in place of the card, and what it
// cannot do.
// Source: nd2.h.
class NetworkDirectProvider final : public Provider {
 public:
  // Loads the library of the options, or those of the system's catalogue, and discovers their cards. `random` and what
  // `on_event` refers to outlive the provider. Errors: ADAPTER_NOT_FOUND when there is no usable card, with the
  // reasons; those of LoadNdSource for the library of the options.
  static absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> Create(const NetworkDirectOptions& options,
                                                                       RandomSource& random,
                                                                       AdapterEventListener on_event);
  // The same with libraries that are loaded already.
  static absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> Create(const NetworkDirectOptions& options,
                                                                       RandomSource& random,
                                                                       std::vector<NdSource> sources,
                                                                       AdapterEventListener on_event);
  ~NetworkDirectProvider() override;

  std::string_view name() const override { return "networkdirect"; }
  std::vector<AdapterDescription> ListAdapters() const override;
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override;
  FastRegistrationCounts fast_registrations() const override;
  bool registers_in_parallel() const override { return true; }

 private:
  explicit NetworkDirectProvider(std::shared_ptr<NdNode> node) : node_(std::move(node)) {}

  // Adds the cards of a source; `remarks` receives a reason for each address without one.
  void AddCards(const NdSource& source, const AdapterEventListener& on_event, std::vector<std::string>& remarks);
  static absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> CreateWith(const NetworkDirectOptions& options,
                                                                           RandomSource& random,
                                                                           std::vector<NdSource> sources,
                                                                           std::vector<std::string> remarks,
                                                                           const AdapterEventListener& on_event);

  const std::shared_ptr<NdNode> node_;
  std::vector<std::shared_ptr<NdDevice>> devices_;
};

}  // namespace rnicd::provider
