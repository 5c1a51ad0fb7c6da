#include "tests/provider_contract/tested_card.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/secrets/random.h"
#include "base/waiting_fixture.h"
#include "provider/soft/net/soft_worker.h"
#include "provider/soft/soft_provider.h"
#include "tests/provider_contract/networkdirect_card.h"
#include "tests/provider_contract/system_cards.h"
#include "tests/provider_contract/test_card.h"

namespace rnicd::provider {
namespace {

class SoftTestedCard final : public TestedCard {
 public:
  explicit SoftTestedCard(const SoftOptions& options)
      : worker_(new ThreadWorker()), provider_(options, random_, std::unique_ptr<SoftWorker>(worker_)) {}
  ~SoftTestedCard() override { EXPECT_EQ(provider_.live_regions(), 0u); }

  Provider& provider() override { return provider_; }
  std::string adapter() const override { return "soft0"; }
  size_t registrations() const override { return provider_.live_regions(); }
  // Requests are executed within Kick, but messages of connections cause others.
  void Settle() override {
    for (int round = 0; round < 4; ++round) {
      auto over = std::make_shared<std::atomic<bool>>(false);
      worker_->Post([over] { *over = true; });
      EXPECT_TRUE(Eventually([&over] { return over->load(); }));
    }
  }

 private:
  KernelRandom random_;
  // Owned by the provider.
  SoftWorker* const worker_;
  SoftProvider provider_;
};

std::unique_ptr<TestedCard> SoftCardOf(std::chrono::microseconds read_delay) {
  SoftOptions options;
  options.read_delay = read_delay;
  return std::make_unique<SoftTestedCard>(options);
}

// The soft card, that of the tests, those of Network Direct, and those of the system.
std::vector<CardKind> With(std::chrono::microseconds read_delay, const TestCardOptions& options,
                           std::chrono::milliseconds probe_interval) {
  std::vector<CardKind> kinds = {
      {.name = "soft", .connects = true, .make = [read_delay] { return SoftCardOf(read_delay); }},
      {.name = "test", .make = [options] { return MakeTestCard(options); }},
      {.name = "networkdirect", .make = [] { return MakeNetworkDirectCard(ModelPending::kInline); }},
      {.name = "networkdirect_pending", .make = [] { return MakeNetworkDirectCard(ModelPending::kMixed); }}};
  for (CardKind& kind : SystemCardKinds(probe_interval)) {
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

}  // namespace

std::vector<CardKind> CardKinds() { return With(std::chrono::microseconds(0), {.seed = 1}, std::chrono::hours(1)); }

std::vector<CardKind> ConnectingCardKinds() {
  std::vector<CardKind> kinds = CardKinds();
  std::erase_if(kinds, [](const CardKind& kind) { return !kind.connects; });
  return kinds;
}

std::vector<CardKind> BusyCardKinds() {
  return With(std::chrono::microseconds(20), {.seed = 2, .delays = 800}, std::chrono::milliseconds(1));
}

}  // namespace rnicd::provider
