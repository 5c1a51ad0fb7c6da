#include "tests/provider_contract/test_card.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <utility>

#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/recording_listener_test.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_memory_region.h"
#include "provider/soft/soft_provider.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

constexpr char kName[] = "test0";
constexpr uint32_t kMostDelayMicroseconds = 100;

// Draws from the seed.
// Threads: safe; the order of the threads is not part of the seed.
class Plan {
 public:
  explicit Plan(const TestCardOptions& options) : options_(options), random_(options.seed) {}

  bool Delays() { return Draw(options_.delays); }
  bool Refuses() { return Draw(options_.refusals); }
  bool Fails() { return Draw(options_.failures); }
  std::chrono::microseconds Delay() {
    MutexLock lock(mutex_);
    return std::chrono::microseconds(random_() % kMostDelayMicroseconds);
  }

 private:
  bool Draw(uint32_t chance) {
    MutexLock lock(mutex_);
    return random_() % 1000 < chance;
  }

  const TestCardOptions options_;
  Mutex mutex_;
  std::mt19937 random_ RNICD_GUARDED_BY(mutex_);
};

class TestEndpoint final : public SoftEndpoint {
 public:
  static std::shared_ptr<QueuePairEngine> Create(std::shared_ptr<SoftNic> nic, uint64_t domain,
                                                 std::shared_ptr<Plan> plan, const QueuePairLimits& limits,
                                                 QueuePairListener& listener) {
    const uint64_t number = nic->fabric().NewNumber();
    std::unique_ptr<SoftEndpoint> card(new TestEndpoint(std::move(nic), domain, number, std::move(plan)));
    return Publish(std::move(card), limits, listener);
  }

  absl::Status Prepare(EngineRequest& request) override {
    return plan_->Refuses() ? MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES) : SoftEndpoint::Prepare(request);
  }
  absl::Status PostReceive(EngineRequest& receive) override {
    return plan_->Refuses() ? MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES) : SoftEndpoint::PostReceive(receive);
  }
  absl::StatusOr<EnginePeer> Connect(std::string_view peer_address) override {
    if (plan_->Refuses()) {
      return MakeError(ErrorReason::DEVICE_FAILED);
    }
    return SoftEndpoint::Connect(peer_address);
  }
  BeginResult Begin(EngineRequest& request, EngineTurn& turn) override {
    if (!turn.resumed && plan_->Delays()) {
      Later([serial = request.serial](QueuePairEngine& engine) { engine.Resume(serial); });
      return BeginResult::Started(/*holds_back=*/!request.IsRead());
    }
    return plan_->Fails() ? BeginResult::Done(NtStatus::kInternalError) : SoftEndpoint::Begin(request, turn);
  }
  NtStatus Conclude(EngineRequest& request) override {
    const NtStatus status = SoftEndpoint::Conclude(request);
    return status == NtStatus::kSuccess && plan_->Fails() ? NtStatus::kInternalError : status;
  }
  void Fail() override {
    Later([](QueuePairEngine& engine) { engine.Abandon(); });
  }

 private:
  TestEndpoint(std::shared_ptr<SoftNic> nic, uint64_t domain, uint64_t number, std::shared_ptr<Plan> plan)
      : SoftEndpoint(std::move(nic), domain, number), plan_(std::move(plan)) {}

  template <typename Job>
  void Later(Job job) {
    nic().fabric().worker().PostAfter(plan_->Delay(), [weak = engine().weak_from_this(), job] {
      if (const std::shared_ptr<QueuePairEngine> self = weak.lock(); self != nullptr) {
        job(*self);
      }
    });
  }

  const std::shared_ptr<Plan> plan_;
};

// Shared by the objects of one card.
struct Hardware {
  std::shared_ptr<SoftNic> nic;
  std::shared_ptr<Plan> plan;
};

class TestCompletionQueue final : public DeviceCompletionQueue {
 public:
  absl::Status Resize(uint32_t /*depth*/) override { return absl::OkStatus(); }
};

class TestDomain final : public DeviceProtectionDomain {
 public:
  explicit TestDomain(Hardware hardware) : hardware_(std::move(hardware)), domain_(hardware_.nic->NextDomain()) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    return SoftMemoryRegion::Register(hardware_.nic, domain_, registration);
  }
  LocalToken privileged_token() const override { return SoftKeyTable::PrivilegedTokenOf(domain_); }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                     bool /*remote_access*/) override {
    if (max_pages > hardware_.nic->max_fast_register_pages()) {
      return MakeError(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
    }
    return SoftFastRegion::Create(hardware_.nic, domain_);
  }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    return SoftWindow::Create(hardware_.nic, domain_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& /*receive_queue*/,
                                                                   DeviceCompletionQueue& /*initiator_queue*/,
                                                                   QueuePairListener& listener) override {
    return std::make_unique<EngineQueuePair>(
        TestEndpoint::Create(hardware_.nic, domain_, hardware_.plan, limits, listener));
  }

 private:
  const Hardware hardware_;
  const uint64_t domain_;
};

class TestAdapter final : public DeviceAdapter {
 public:
  explicit TestAdapter(Hardware hardware) : hardware_(std::move(hardware)) {}

  const NdkAdapterInfo& info() const override { return hardware_.nic->info(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    return std::make_unique<TestDomain>(hardware_);
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t /*depth*/) override {
    return std::make_unique<TestCompletionQueue>();
  }

 private:
  const Hardware hardware_;
};

class TestProvider final : public Provider {
 public:
  explicit TestProvider(const TestCardOptions& options)
      : fabric_(std::make_shared<SoftFabric>(random_, std::make_unique<ThreadWorker>())),
        hardware_{.nic = std::make_shared<SoftNic>(kName, IpAddress(), SoftOptions{}, random_, fabric_),
                  .plan = std::make_shared<Plan>(options)} {}
  ~TestProvider() override { fabric_->worker().Stop(); }

  std::string_view name() const override { return "test"; }
  std::vector<AdapterDescription> ListAdapters() const override {
    return {{.name = kName, .numa_node = -1, .info = hardware_.nic->info()}};
  }
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override {
    if (adapter_name != kName) {
      return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
    }
    return std::make_unique<TestAdapter>(hardware_);
  }
  uint64_t live_regions() const override { return hardware_.nic->keys().size(); }
  FastRegistrationCounts fast_registrations() const override { return {.native = hardware_.nic->fast_registrations()}; }
  // Returns when every job that is due within the longest delay has run.
  void Settle() {
    auto over = std::make_shared<std::atomic<bool>>(false);
    fabric_->worker().PostAfter(std::chrono::microseconds(kMostDelayMicroseconds), [over] { *over = true; });
    EXPECT_TRUE(Eventually([&over] { return over->load(); }));
  }

 private:
  KernelRandom random_;
  const std::shared_ptr<SoftFabric> fabric_;
  const Hardware hardware_;
};

class TestTestedCard final : public TestedCard {
 public:
  explicit TestTestedCard(const TestCardOptions& options) : seed_(options.seed), provider_(options) {}
  ~TestTestedCard() override { EXPECT_EQ(provider_.live_regions(), 0u) << "seed " << seed_; }

  Provider& provider() override { return provider_; }
  std::string adapter() const override { return kName; }
  size_t registrations() const override { return provider_.live_regions(); }
  // Several times, because what it waits for may take more than one step.
  void Settle() override {
    for (int round = 0; round < 4; ++round) {
      provider_.Settle();
    }
  }

 private:
  const uint32_t seed_;
  TestProvider provider_;
};

}  // namespace

std::unique_ptr<TestedCard> MakeTestCard(const TestCardOptions& options) {
  return std::make_unique<TestTestedCard>(options);
}

}  // namespace rnicd::provider
