#include "tests/provider_contract/networkdirect_card.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/networkdirect/nd_provider.h"
#include "tests/networkdirect_model/loaded_model_test.h"

namespace rnicd::provider {
namespace {

class NetworkDirectTestedCard final : public TestedCard {
 public:
  explicit NetworkDirectTestedCard(ModelPending pending) {
    model_.control().SetPending(pending);
    auto provider = NetworkDirectProvider::Create({}, random_, {model_.source()}, IgnoreAdapterEvents);
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = *std::move(provider);
  }
  ~NetworkDirectTestedCard() override {
    probe_.reset();
    EXPECT_EQ(provider_->live_regions(), 0u);
    provider_.reset();
  }

  Provider& provider() override { return *provider_; }
  std::string adapter() const override { return kModelAdapter; }
  size_t registrations() const override { return model_.control().Count().regions - (probe_.has_value() ? 1 : 0); }
  // The model does what it can, and a message goes round behind that; several times, because what it waits for may take
  // more than one step.
  void Settle() override {
    if (!probe_.has_value()) {
      probe_.emplace(*provider_, adapter());
      ASSERT_TRUE(probe_->ConnectTo(*probe_).ok());
    }
    for (int round = 0; round < 4; ++round) {
      ASSERT_TRUE(Eventually([this] { return model_.control().IsIdle(); }));
      const size_t count = probe_->received().size() + 1;
      probe_->Post(Receive(count));
      probe_->Post(Send(count));
      ASSERT_TRUE(probe_->Received(count) && probe_->Initiated(count));
    }
  }

 private:
  LoadedModel model_;
  KernelRandom random_;
  std::unique_ptr<NetworkDirectProvider> provider_;
  std::optional<ProviderSide> probe_;
};

}  // namespace

std::unique_ptr<TestedCard> MakeNetworkDirectCard(ModelPending pending) {
  return std::make_unique<NetworkDirectTestedCard>(pending);
}

}  // namespace rnicd::provider
