#include "daemon/core/region/ordinary_region.h"

#include <optional>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kBaseAddress = 0x7f0000000000;

// A card whose deregistration can be observed: `on_deregister` runs inside it.
class WatchedRegion final : public provider::DeviceMemoryRegion {
 public:
  explicit WatchedRegion(const std::function<void()>& on_deregister) : on_deregister_(on_deregister) {}
  LocalToken local_token() const override { return {1}; }
  RemoteToken remote_token() const override { return {2}; }
  absl::Status Deregister() override {
    if (on_deregister_ != nullptr) {
      on_deregister_();
    }
    return absl::OkStatus();
  }

 private:
  const std::function<void()>& on_deregister_;
};

class WatchedDomain final : public provider::DeviceProtectionDomain {
 public:
  explicit WatchedDomain(const std::function<void()>& on_deregister) : on_deregister_(on_deregister) {}
  absl::StatusOr<std::unique_ptr<provider::DeviceMemoryRegion>> RegisterMemory(
      const provider::DeviceRegistration&) override {
    return std::make_unique<WatchedRegion>(on_deregister_);
  }
  LocalToken privileged_token() const override { return {3}; }
  absl::StatusOr<std::shared_ptr<provider::DeviceFastRegion>> CreateFastRegion(uint32_t, bool) override {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  absl::StatusOr<std::shared_ptr<provider::DeviceMemoryWindow>> CreateMemoryWindow() override {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  absl::StatusOr<std::unique_ptr<provider::DeviceQueuePair>> CreateQueuePair(const QueuePairLimits&,
                                                                             provider::DeviceCompletionQueue&,
                                                                             provider::DeviceCompletionQueue&,
                                                                             provider::QueuePairListener&) override {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }

 private:
  const std::function<void()>& on_deregister_;
};

class WatchedAdapter final : public provider::DeviceAdapter {
 public:
  explicit WatchedAdapter(const std::function<void()>& on_deregister) : on_deregister_(on_deregister) {
    info_.max_registration_size = UINT64_MAX;
  }
  const NdkAdapterInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<provider::DeviceProtectionDomain>> CreateProtectionDomain() override {
    return std::make_unique<WatchedDomain>(on_deregister_);
  }
  absl::StatusOr<std::unique_ptr<provider::DeviceCompletionQueue>> CreateCompletionQueue(uint32_t) override {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }

 private:
  const std::function<void()>& on_deregister_;
  NdkAdapterInfo info_;
};

class OrdinaryRegionTest : public ::testing::Test {
 protected:
  OrdinaryRegionTest() : OrdinaryRegionTest(WorldOptions()) {}
  explicit OrdinaryRegionTest(const WorldOptions& options) : world_(options) {
    domain_ = DomainOf(*world_.provider.OpenAdapter("soft0"));
    memory_ = NewMemory(world_.ledger);
    region_ = NewRegion(domain_);
  }

  std::shared_ptr<MemoryObject> NewMemory(const std::shared_ptr<Ledger>& owner) {
    auto memory = UnchargedMemory(world_.os, 4 * kPage, PinsOf(owner));
    EXPECT_TRUE(memory->Allocate({.page_bytes = kPage}).ok());
    EXPECT_TRUE(FetchAndSeal(*memory).ok());
    return memory;
  }

  static std::shared_ptr<ProtectionDomain> DomainOf(std::unique_ptr<provider::DeviceAdapter> device) {
    const auto adapter = std::make_shared<Adapter>("soft0", std::move(device), Charge());
    return *ProtectionDomain::Create(adapter, std::make_shared<Charge>());
  }
  std::shared_ptr<OrdinaryRegion> NewRegion(const std::shared_ptr<ProtectionDomain>& domain) {
    return *OrdinaryRegion::Create(domain, std::make_shared<Charge>(), tally_, world_.observer, world_.clock);
  }
  MappedRange Range(uint64_t bytes = 2 * kPage) {
    const MdlEntry entry{.memory_id = {1}, .byte_offset = 0, .byte_count = bytes, .virtual_address = {kBaseAddress}};
    return *ResolveMdlChain({&entry, 1}, bytes, [this](MemoryObjectId) { return memory_; });
  }
  absl::StatusOr<Registration> Register() {
    RNICD_ASSIGN_OR_RETURN(auto request, region_->BeginRegister(Range(), kAll, world_.ledger));
    return region_->FinishRegister(request, absl::OkStatus());
  }
  absl::Status Deregister() {
    RNICD_ASSIGN_OR_RETURN(auto request, region_->BeginDeregister());
    return region_->FinishDeregister(request, absl::OkStatus());
  }

  static constexpr AccessRights kAll{.local_write = true, .remote_read = true, .remote_write = true};
  World world_;
  const std::shared_ptr<TenantTally> tally_ = std::make_shared<TenantTally>("storage");
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<MemoryObject> memory_;
  std::shared_ptr<OrdinaryRegion> region_;
};

TEST_F(OrdinaryRegionTest, ANewRegionHasNoTokens) {
  EXPECT_THAT(region_->GetLocalToken().status(), FailsAt(ErrorReason::REGION_NOT_REGISTERED, "mr_id"));
  EXPECT_THAT(region_->GetRemoteToken().status(), FailsAt(ErrorReason::REGION_NOT_REGISTERED, "mr_id"));
  EXPECT_EQ(region_->View().state, "created");
  EXPECT_EQ(region_->registered_length(), 0u);
}

TEST_F(OrdinaryRegionTest, ARegisteredRegionShowsWhatItIs) {
  const auto registration = Register();
  ASSERT_TRUE(registration.ok()) << registration.status();
  EXPECT_EQ(registration->base_address.value, kBaseAddress);
  EXPECT_EQ(registration->length, 2 * kPage);
  EXPECT_EQ(*region_->GetLocalToken(), registration->local_token);
  EXPECT_EQ(*region_->GetRemoteToken(), registration->remote_token);
  const RegionView view = region_->View();
  EXPECT_EQ(view.state, "registered");
  EXPECT_EQ(view.adapter_name, "soft0");
  EXPECT_EQ(view.base.value, kBaseAddress);
  EXPECT_EQ(view.pages, 2u);
  EXPECT_EQ(view.page_bytes, kPage);
  EXPECT_EQ(view.rights, kAll);
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 ");
  EXPECT_EQ(world_.soft.live_regions(), 1u);
  EXPECT_EQ(world_.observer.counts().registered, 1u);
}

TEST_F(OrdinaryRegionTest, ASecondRegisterIsRefusedAndChangesNothing) {
  ASSERT_TRUE(Register().ok());
  EXPECT_THAT(Register().status(), FailsAt(ErrorReason::REGION_ALREADY_REGISTERED, "mr_id"));
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 ");
  EXPECT_TRUE(region_->GetLocalToken().ok());
}

TEST_F(OrdinaryRegionTest, SecondDeregisterIsRefused) {
  EXPECT_THAT(Deregister(), FailsAt(ErrorReason::REGION_NOT_REGISTERED, "mr_id"));
  ASSERT_TRUE(Register().ok());
  EXPECT_TRUE(Deregister().ok());
  EXPECT_THAT(Deregister(), FailsWith(ErrorReason::REGION_NOT_REGISTERED));
  EXPECT_EQ(world_.Held(), "");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
  EXPECT_TRUE(memory_->Release().ok()) << "a deregistered region lets go of its memory";
}

TEST_F(OrdinaryRegionTest, CanBeRegisteredAgainWithOtherTokens) {
  const auto first = Register();
  ASSERT_TRUE(first.ok() && Deregister().ok());
  const auto second = Register();
  ASSERT_TRUE(second.ok());
  EXPECT_NE(first->local_token, second->local_token);
}

TEST_F(OrdinaryRegionTest, WhileARequestRunsEveryOtherIsBusy) {
  auto request = region_->BeginRegister(Range(), kAll, world_.ledger);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(region_->View().state, "registering");
  EXPECT_THAT(region_->BeginRegister(Range(), kAll, world_.ledger).status(), FailsWith(ErrorReason::REGION_BUSY));
  EXPECT_THAT(region_->BeginDeregister().status(), FailsWith(ErrorReason::REGION_BUSY));
  EXPECT_FALSE(region_->GetLocalToken().ok());
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 ") << "a refused request keeps no charge";
  ASSERT_TRUE(region_->FinishRegister(*request, absl::OkStatus()).ok());
  const auto deregister = region_->BeginDeregister();
  ASSERT_TRUE(deregister.ok());
  EXPECT_EQ(region_->View().state, "deregistering");
  EXPECT_THAT(region_->BeginRegister(Range(), kAll, world_.ledger).status(), FailsWith(ErrorReason::REGION_BUSY));
  EXPECT_THAT(region_->GetRemoteToken().status(), FailsWith(ErrorReason::REGION_NOT_REGISTERED));
}

TEST_F(OrdinaryRegionTest, ACardThatRefusesARegistrationLeavesTheRegionAsItWas) {
  for (const ErrorReason reason :
       {ErrorReason::DEVICE_FAILED, ErrorReason::DEVICE_OUT_OF_RESOURCES, ErrorReason::DEVICE_NOT_CAPABLE}) {
    world_.plan.FailRegister(MakeError(reason), 1);
    EXPECT_THAT(Register().status(), FailsWith(reason));
    EXPECT_EQ(region_->View().state, "created");
    EXPECT_EQ(world_.Held(), "");
    EXPECT_EQ(world_.soft.live_regions(), 0u);
  }
  EXPECT_EQ(world_.observer.counts().registration_failures.size(), 3u);
  EXPECT_TRUE(memory_->Release().ok());
}

TEST_F(OrdinaryRegionTest, ACardThatRefusesADeregistrationLeavesTheRegionRegistered) {
  const auto registration = Register();
  world_.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_THAT(Deregister(), FailsWith(ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(region_->View().state, "registered");
  EXPECT_EQ(*region_->GetLocalToken(), registration->local_token);
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 ");
  EXPECT_THAT(memory_->Release(), FailsWith(ErrorReason::MEMORY_IN_USE));
  EXPECT_EQ(world_.observer.counts().deregistrations_failed, 1u);
  EXPECT_TRUE(Deregister().ok()) << "it can be tried again";
}

TEST_F(OrdinaryRegionTest, ClosingARegisteredRegionDeregistersIt) {
  ASSERT_TRUE(Register().ok());
  EXPECT_EQ(*region_->Close(nullptr), Closable::CloseResult::kClosed);
  EXPECT_EQ(world_.Held(), "");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
  EXPECT_TRUE(memory_->Release().ok());
  EXPECT_EQ(*domain_->Close(nullptr), Closable::CloseResult::kClosed);
}

TEST_F(OrdinaryRegionTest, ClosingTakesTheRegionBackEvenWhenTheCardRefuses) {
  ASSERT_TRUE(Register().ok());
  world_.plan.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_EQ(*region_->Close(nullptr), Closable::CloseResult::kClosed);
  EXPECT_EQ(world_.Held(), "");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
  EXPECT_EQ(world_.observer.counts().deregistrations_failed, 1u);
}

TEST_F(OrdinaryRegionTest, ACloseWaitsForTheRunningRequest) {
  std::optional request = *region_->BeginRegister(Range(), kAll, world_.ledger);
  bool closed = false;
  EXPECT_EQ(*region_->Close([&] { closed = true; }), Closable::CloseResult::kPending);
  EXPECT_THAT(region_->BeginDeregister().status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_TRUE(region_->FinishRegister(*request, absl::OkStatus()).ok()) << "the request still has its outcome";
  EXPECT_FALSE(closed) << "which is reported first";
  request.reset();
  EXPECT_TRUE(closed);
  EXPECT_EQ(world_.Held(), "");
  EXPECT_EQ(world_.soft.live_regions(), 0u);
}

TEST_F(OrdinaryRegionTest, ARegionHoldsItsDomainOpen) {
  bool closed = false;
  EXPECT_EQ(*domain_->Close([&] { closed = true; }), Closable::CloseResult::kPending);
  EXPECT_THAT(
      OrdinaryRegion::Create(domain_, std::make_shared<Charge>(), tally_, world_.observer, world_.clock).status(),
      FailsWith(ErrorReason::OBJECT_CLOSING));
  EXPECT_TRUE(Register().ok()) << "a living region of a closing domain goes on";
  ASSERT_TRUE(region_->Close(nullptr).ok());
  EXPECT_TRUE(closed);
}

TEST_F(OrdinaryRegionTest, AboveTheOwnersLimitNothingIsRegistered) {
  Limits limits;
  limits[Resource::kPinnedBytes] = 3 * kPage;
  const auto ledger = std::make_shared<Ledger>(limits, world_.ledger);
  memory_ = NewMemory(ledger);
  const auto refused = region_->BeginRegister(Range(4 * kPage), kAll, ledger).status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_PINNED_BYTES));
  EXPECT_EQ(ErrorInfoOf(refused).limit, 3 * kPage);
  EXPECT_EQ(ErrorInfoOf(refused).requested, 4 * kPage);
  EXPECT_EQ(world_.Held(), "") << "a refused request keeps neither count";
  EXPECT_TRUE(region_->BeginRegister(Range(3 * kPage), kAll, ledger).ok());
}

// A token read races with a close: the region is found, then closed, then read. While the card executes the
// deregistration no token is available.
TEST_F(OrdinaryRegionTest, ATokenReadDuringACloseIsRefused) {
  std::function<void()> on_deregister;
  region_ = NewRegion(DomainOf(std::make_unique<WatchedAdapter>(on_deregister)));
  ASSERT_TRUE(Register().ok());
  int reads = 0;
  on_deregister = [&] {
    ++reads;
    EXPECT_THAT(region_->GetLocalToken().status(), FailsWith(ErrorReason::REGION_NOT_REGISTERED));
    EXPECT_THAT(region_->GetRemoteToken().status(), FailsWith(ErrorReason::REGION_NOT_REGISTERED));
    EXPECT_EQ(region_->View().state, "deregistering");
    EXPECT_EQ(region_->registered_length(), 0u);
  };
  ASSERT_TRUE(region_->Close(nullptr).ok());
  EXPECT_EQ(reads, 1);
}

TEST_F(OrdinaryRegionTest, OfRacingRequestsOneWins) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&] { won += Register().ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_EQ(won, 1);
    won = 0;
    threads.clear();
    for (int index = 0; index < 3; ++index) {
      threads.emplace_back([&] { won += Deregister().ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    ASSERT_EQ(won, 1);
    ASSERT_EQ(world_.Held(), "");
  }
}

class SmallCardTest : public OrdinaryRegionTest {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.soft.max_registration_bytes = 2 * kPage;
    options.soft.max_regions = 1;
    return options;
  }
  SmallCardTest() : OrdinaryRegionTest(Options()) {}
};

TEST_F(SmallCardTest, ALengthAboveTheCardsLimitIsRefused) {
  EXPECT_THAT(region_->BeginRegister(Range(2 * kPage + 1), kAll, world_.ledger).status(),
              FailsAt(ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT, "length"));
  EXPECT_TRUE(Register().ok()) << "exactly the limit is allowed";
}

TEST_F(SmallCardTest, AFullCardSaysSo) {
  ASSERT_TRUE(Register().ok());
  const auto first = std::exchange(region_, NewRegion(domain_));
  EXPECT_THAT(Register().status(), FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(world_.Held(), "pinned_bytes=8192 registered_bytes=8192 ");
}

}  // namespace
}  // namespace rnicd::core
