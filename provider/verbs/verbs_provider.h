#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/secrets/random.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/verbs/card/verbs_api.h"
#include "provider/verbs/card/verbs_options.h"
#include "provider/verbs/connection/rdma_cm.h"

namespace rnicd::provider {

struct VerbsNode;
class CardWatch;
class CmChannel;
class OfferedCards;

// Real RNICs, through libibverbs. README.md lists what the provider does in place of the card, and what it cannot do.
// Source: ibv_get_device_list(3) and the man pages it refers to.
class VerbsProvider final : public Provider {
 public:
  // Discovers the cards, and goes on looking for more. `random`, `api`, `cm` and what `on_event` refers to outlive the
  // provider. Without `cm`, or where it cannot be used, there are no connections by address; the second is reported as
  // a card that is left out. Errors: ADAPTER_NOT_FOUND when there is no usable card; DEVICE_NOT_CAPABLE when windows
  // are required of a card that does not check their bounds. Both list the cards that were examined and why each was
  // left out.
  static absl::StatusOr<std::unique_ptr<VerbsProvider>> Create(const VerbsOptions& options, RandomSource& random,
                                                               VerbsApi& api, AdapterEventListener on_event,
                                                               RdmaCm* cm = nullptr);
  ~VerbsProvider() override;

  std::string_view name() const override { return "verbs"; }
  std::vector<AdapterDescription> ListAdapters() const override;
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override;
  FastRegistrationCounts fast_registrations() const override;
  bool registers_in_parallel() const override { return true; }

 private:
  VerbsProvider(std::shared_ptr<VerbsNode> node, RdmaCm* cm);

  void OpenChannel(RdmaCm& cm, std::vector<std::string>& remarks);

  const std::shared_ptr<VerbsNode> node_;
  const std::shared_ptr<OfferedCards> cards_;
  std::shared_ptr<CmChannel> channel_;
  std::shared_ptr<CardWatch> watch_;
};

}  // namespace rnicd::provider
