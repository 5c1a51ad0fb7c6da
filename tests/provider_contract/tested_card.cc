#include "tests/provider_contract/tested_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "provider/api/provider_side_test.h"
#include "provider/soft/soft_provider.h"
#include "provider/verbs/verbs_fake_test.h"
#include "provider/verbs/verbs_provider.h"
#include "tests/provider_contract/fake_wire.h"
#include "tests/provider_contract/test_card.h"

namespace rnicd::provider {
namespace {

class SoftTestedCard final : public TestedCard {
 public:
  explicit SoftTestedCard(const SoftOptions& options) : provider_(options, random_) {}
  ~SoftTestedCard() override { EXPECT_EQ(provider_.live_regions(), 0u); }

  Provider& provider() override { return provider_; }
  std::string adapter() const override { return "soft0"; }
  size_t registrations() const override { return provider_.live_regions(); }
  // It executes within Ring.
  void Settle() override {}

 private:
  KernelRandom random_;
  SoftProvider provider_;
};

class VerbsTestedCard final : public TestedCard {
 public:
  explicit VerbsTestedCard(std::chrono::milliseconds probe_interval) {
    // The start-up probe needs a card that answers at once.
    fake_.set_automatic(true);
    VerbsOptions options;
    options.fast_engine = FastEngine::kRegistration;
    options.probe_interval = probe_interval;
    auto provider = VerbsProvider::Create(options, random_, fake_, IgnoreAdapterEvents);
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
  KernelRandom random_;
  std::unique_ptr<VerbsProvider> provider_;
  std::optional<FakeWire> wire_;
  std::optional<ProviderSide> probe_;
};

std::unique_ptr<TestedCard> SoftCardOf(std::chrono::microseconds read_delay) {
  SoftOptions options;
  options.read_delay = read_delay;
  return std::make_unique<SoftTestedCard>(options);
}

}  // namespace

std::vector<CardKind> CardKinds() {
  return {{.name = "soft", .make = [] { return SoftCardOf(std::chrono::microseconds(0)); }},
          {.name = "verbs", .make = [] { return std::make_unique<VerbsTestedCard>(std::chrono::hours(1)); }},
          {.name = "test", .make = [] { return MakeTestCard({.seed = 1}); }}};
}

std::vector<CardKind> BusyCardKinds() {
  return {{.name = "soft", .make = [] { return SoftCardOf(std::chrono::microseconds(20)); }},
          {.name = "verbs", .make = [] { return std::make_unique<VerbsTestedCard>(std::chrono::milliseconds(1)); }},
          {.name = "test", .make = [] { return MakeTestCard({.seed = 2, .delays = 800}); }}};
}

}  // namespace rnicd::provider
