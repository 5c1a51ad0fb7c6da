// Which cards get fast registrations by the kernel.

#include "provider/verbs/kernel_probe.h"

#include "provider/verbs/fake/kernel_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::HasSubstr;

// A module with one fault.
class FaultyModule final : public FastModule {
 public:
  enum class Fault : uint8_t { kTooLong, kOtherPages, kStays };
  FaultyModule(FakeVerbs& card, Fault fault) : module_(card), fault_(fault) {}

  int Take(ibv_pd* pd, uint8_t port, uint8_t gid_index, rnicd_fr_take& out) override {
    return module_.Take(pd, port, gid_index, out);
  }
  void Close(int domain) override { module_.Close(domain); }
  int Map(int domain, std::span<std::byte> pages, uint32_t& mapping) override {
    return module_.Map(domain, pages, mapping);
  }
  int Unmap(int domain, uint32_t mapping) override { return module_.Unmap(domain, mapping); }
  int CreateRegion(int domain, uint32_t pages, rnicd_fr_create_region& region) override {
    return module_.CreateRegion(domain, pages, region);
  }
  int DestroyRegion(int domain, uint32_t region) override { return module_.DestroyRegion(domain, region); }
  int Submit(int domain, std::span<rnicd_fr_op> ops, std::span<const rnicd_fr_run> runs) override {
    std::vector<rnicd_fr_run> changed(runs.begin(), runs.end());
    if (fault_ == Fault::kTooLong && ops[0].kind == RNICD_FR_REGISTER) {
      ops[0].length += 32;
    } else if (fault_ == Fault::kOtherPages) {
      std::ranges::reverse(changed);
    } else if (fault_ == Fault::kStays && ops[0].kind == RNICD_FR_INVALIDATE) {
      ops[0].result = 0;
      return 0;
    }
    return module_.Submit(domain, ops, changed);
  }

 private:
  FakeFastModule module_;
  const Fault fault_;
};

class KernelProbeTest : public KernelTest {
 protected:
  // A second card of the same kind.
  absl::StatusOr<std::unique_ptr<VerbsProvider>> Create(std::shared_ptr<FastModule> module, FastEngine engine) {
    AnsweringTheProbe(fake_);
    return VerbsProvider::Create(Options(std::move(module), engine), random_, fake_, IgnoreAdapterEvents);
  }
  std::string EngineOf(VerbsProvider& provider) { return provider.ListAdapters().front().fast_engine; }

  KernelRandom random_;
};

TEST_F(KernelProbeTest, ACardThatPassesHasThemByTheKernel) {
  for (const FastEngine engine : {FastEngine::kAuto, FastEngine::kKernel}) {
    auto provider = Create(std::make_shared<FakeFastModule>(fake_), engine);
    ASSERT_TRUE(provider.ok()) << provider.status();
    EXPECT_EQ(EngineOf(**provider), "kernel");
  }
}

TEST_F(KernelProbeTest, TheProbeLeavesNothing) {
  const FakeLive before = fake_.live();
  const auto module = std::make_shared<FakeFastModule>(fake_);
  {
    ASSERT_TRUE(Create(module, FastEngine::kKernel).ok());
    EXPECT_EQ(module->domains(), 0u);
  }
  EXPECT_EQ(fake_.live(), before);
}

TEST_F(KernelProbeTest, WithoutAModuleTheyAreRegistrationsUnlessTheKernelIsDemanded) {
  auto provider = Create(nullptr, FastEngine::kAuto);
  ASSERT_TRUE(provider.ok());
  EXPECT_EQ(EngineOf(**provider), "registration");
  EXPECT_EQ((*provider)->ListAdapters().front().fast_engine_reason, "there is no kernel module");
  const absl::Status refused = Create(nullptr, FastEngine::kKernel).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fake0: there is no kernel module"));
}

TEST_F(KernelProbeTest, ACardWithAFaultDoesNotHaveThem) {
  using Fault = FaultyModule::Fault;
  const struct {
    Fault fault;
    const char* reason;
  } kRows[] = {
      {Fault::kTooLong, "does not check the bounds"},
      {Fault::kOtherPages, "does not reach the first page"},
      {Fault::kStays, "after its invalidation"},
  };
  for (const auto& row : kRows) {
    auto provider = Create(std::make_shared<FaultyModule>(fake_, row.fault), FastEngine::kAuto);
    ASSERT_TRUE(provider.ok()) << provider.status();
    EXPECT_EQ(EngineOf(**provider), "registration");
    EXPECT_THAT((*provider)->ListAdapters().front().fast_engine_reason, HasSubstr(row.reason));
  }
}

TEST_F(KernelProbeTest, ACardWhosePeersCannotInvalidateDoesNotHaveThem) {
  fake_.set_automatic(true);
  fake_.on_send = [this](const PostedSend& send) {
    if (send.opcode == IBV_WR_SEND_WITH_INV) {
      fake_.Arrive(fake_.qp_nums().front(), {});
    }
  };
  auto provider = VerbsProvider::Create(Options(std::make_shared<FakeFastModule>(fake_), FastEngine::kAuto), random_,
                                        fake_, IgnoreAdapterEvents);
  ASSERT_TRUE(provider.ok());
  EXPECT_THAT((*provider)->ListAdapters().front().fast_engine_reason, HasSubstr("a peer cannot invalidate"));
}

TEST_F(KernelProbeTest, AModuleThatRefusesSaysWhy) {
  const auto module = std::make_shared<FakeFastModule>(fake_);
  module->FailNext("Take", EOPNOTSUPP);
  auto provider = Create(module, FastEngine::kAuto);
  ASSERT_TRUE(provider.ok());
  EXPECT_THAT((*provider)->ListAdapters().front().fast_engine_reason, HasSubstr("does not take a domain"));
}

}  // namespace
}  // namespace rnicd::provider
