#include "tests/provider_contract/real_card_linux.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/api/recording_connector_test.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::provider {
namespace {

// Those of the tests are below and above.
constexpr uint16_t kSettlePort = 49000;

class RealCard final : public TestedCard {
 public:
  explicit RealCard(std::string name) : name_(std::move(name)) {
    auto provider =
        VerbsProvider::Create({.devices = {name_}}, random_, RdmaCore(), IgnoreAdapterEvents, &RdmaCmLibrary());
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = *std::move(provider);
  }
  ~RealCard() override {
    listener_.reset();
    probe_.reset();
    EXPECT_EQ(provider_->live_regions(), 0u);
  }

  Provider& provider() override { return *provider_; }
  std::string adapter() const override { return name_; }
  size_t registrations() const override { return provider_->live_regions(); }
  void Settle() override {
    if (!probe_.has_value()) {
      probe_.emplace(*provider_, name_);
      ASSERT_TRUE(probe_->ConnectTo(*probe_).ok());
      requests_->on_request = [](ConnectionRequest&, RecordingConnector&) { return false; };
      listener_ = *probe_->adapter().Listen(Address(kSettlePort), requests_);
    }
    for (int round = 0; round < 4; ++round) {
      const size_t count = probe_->received().size() + 1;
      probe_->Post(Receive(count));
      probe_->Post(Send(count));
      ASSERT_TRUE(probe_->Received(count) && probe_->Initiated(count));
      AskOnce();
    }
  }

 private:
  NetworkAddress Address(uint16_t port) { return {.ip = probe_->adapter().addresses().front(), .port = port}; }
  void AskOnce() {
    const auto events = std::make_shared<RecordingConnector>();
    const std::unique_ptr<DeviceConnector> connector = *probe_->adapter().CreateConnector(events);
    ASSERT_TRUE(
        connector->Connect(probe_->pair(), {.local = Address(next_port_++), .peer = Address(kSettlePort)}, {}).ok());
    ASSERT_EQ(events->WaitFor(1), Events{"CONNECTION_REFUSED"});
  }

  const std::string name_;
  KernelRandom random_;
  std::unique_ptr<VerbsProvider> provider_;
  std::optional<ProviderSide> probe_;
  const std::shared_ptr<RecordingRequests> requests_ = std::make_shared<RecordingRequests>();
  std::unique_ptr<DeviceListener> listener_;
  uint16_t next_port_ = kSettlePort + 1;
};

}  // namespace

std::unique_ptr<TestedCard> MakeRealCard(const std::string& name) { return std::make_unique<RealCard>(name); }

}  // namespace rnicd::provider
