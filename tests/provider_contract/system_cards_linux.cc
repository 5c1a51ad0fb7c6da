#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/secrets/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/verbs/fake/rdma_cm_fake.h"
#include "provider/verbs/fake/verbs_fake.h"
#include "provider/verbs/verbs_provider.h"
#include "tests/provider_contract/fake_wire_linux.h"
#include "tests/provider_contract/real_card_linux.h"
#include "tests/provider_contract/system_cards.h"

namespace rnicd::provider {
namespace {

class VerbsTestedCard final : public TestedCard {
 public:
  explicit VerbsTestedCard(std::chrono::milliseconds probe_interval) {
    // The start-up probe needs a card that answers at once.
    fake_.set_automatic(true);
    VerbsOptions options;
    options.fast_engine = FastEngine::kRegistration;
    options.probe_interval = probe_interval;
    auto provider = VerbsProvider::Create(options, random_, fake_, IgnoreAdapterEvents, &cm_);
    EXPECT_TRUE(provider.ok()) << provider.status();
    provider_ = *std::move(provider);
    fake_.set_automatic(false);
    wire_.emplace(fake_);
  }
  ~VerbsTestedCard() override {
    probe_.reset();
    wire_.reset();
    provider_.reset();
    EXPECT_THAT(fake_.violations(), ::testing::IsEmpty());
    EXPECT_EQ(fake_.live(), FakeLive{});
  }

  Provider& provider() override { return *provider_; }
  std::string adapter() const override { return "fake0"; }
  size_t registrations() const override { return fake_.regions().size(); }
  // A message of its own goes round behind everything else; several times, because what it waits for may take more than
  // one step.
  void Settle() override {
    if (!probe_.has_value()) {
      probe_.emplace(*provider_, adapter());
      ASSERT_TRUE(probe_->ConnectTo(*probe_).ok());
    }
    for (int round = 0; round < 4; ++round) {
      const size_t count = probe_->received().size() + 1;
      probe_->Post(Receive(count));
      probe_->Post(Send(count));
      ASSERT_TRUE(probe_->Received(count) && probe_->Initiated(count));
    }
  }

 private:
  FakeVerbs fake_;
  FakeRdmaCm cm_;
  KernelRandom random_;
  std::unique_ptr<VerbsProvider> provider_;
  std::optional<FakeWire> wire_;
  std::optional<ProviderSide> probe_;
};

}  // namespace

std::vector<CardKind> SystemCardKinds(std::chrono::milliseconds probe_interval) {
  std::vector<CardKind> kinds = {{.name = "verbs", .connects = true, .make = [probe_interval] {
                                    return std::make_unique<VerbsTestedCard>(probe_interval);
                                  }}};
  if (const char* const name = std::getenv("RNICD_TEST_CARD"); name != nullptr) {
    kinds.push_back(
        {.name = "card", .connects = true, .make = [card = std::string(name)] { return MakeRealCard(card); }});
  }
  return kinds;
}

}  // namespace rnicd::provider
