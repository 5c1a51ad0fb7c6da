#include "provider/decorator/fault_injecting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/recording_connector_test.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

class CountingListener final : public QueuePairListener {
 public:
  void OnCompletion(WorkQueue, const Completion& completion) override { statuses.push_back(completion.status); }
  void OnPeerDisconnected() override {}

  std::vector<NtStatus> statuses;
};

class FaultInjectingTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(DeviceProtectionDomain& domain) {
    return domain.RegisterMemory({.base = {kNdkPageBytes}, .length = kNdkPageBytes, .runs = {&run_, 1}});
  }

  // A queue pair connected to itself, and its dependencies.
  struct Scene {
    std::unique_ptr<DeviceAdapter> adapter;
    std::unique_ptr<DeviceProtectionDomain> domain;
    std::unique_ptr<DeviceCompletionQueue> queue;
    std::unique_ptr<DeviceQueuePair> pair;
  };
  Scene NewScene() {
    Scene scene;
    scene.adapter = *provider_.OpenAdapter("soft0");
    scene.domain = *scene.adapter->CreateProtectionDomain();
    scene.queue = *scene.adapter->CreateCompletionQueue(8);
    scene.pair = *scene.domain->CreateQueuePair(kLimits, *scene.queue, *scene.queue, listener_);
    EXPECT_TRUE(scene.pair->Connect(scene.pair->address()).ok());
    return scene;
  }

  static constexpr QueuePairLimits kLimits{.receive_depth = 4, .initiator_depth = 4};
  KernelRandom random_;
  CountingListener listener_;
  SoftProvider soft_{{}, random_};
  FaultPlan plan_;
  FaultInjectingProvider provider_{soft_, plan_};
  std::array<std::byte, kNdkPageBytes> page_{};
  std::span<std::byte> run_{page_};
};

TEST_F(FaultInjectingTest, WithoutAPlanItIsTheProviderInside) {
  EXPECT_EQ(provider_.name(), "soft");
  EXPECT_EQ(provider_.ListAdapters().size(), 1u);
  const auto adapter = provider_.OpenAdapter("soft0");
  ASSERT_TRUE(adapter.ok());
  EXPECT_EQ((*adapter)->info().max_registration_size, soft_.ListAdapters()[0].info.max_registration_size);
  const auto domain = (*adapter)->CreateProtectionDomain();
  const auto region = Register(**domain);
  ASSERT_TRUE(region.ok());
  EXPECT_NE((*region)->local_token().value, (*region)->remote_token().value);
  EXPECT_EQ(provider_.live_regions(), 1u);
  EXPECT_TRUE((*region)->Deregister().ok());
  EXPECT_TRUE(FailedWith(provider_.OpenAdapter("soft9").status(), ErrorReason::ADAPTER_NOT_FOUND));
}

TEST_F(FaultInjectingTest, PlannedCallsFailAsOftenAsPlannedAndChangeNothing) {
  const auto adapter = provider_.OpenAdapter("soft0");
  plan_.FailCreateProtectionDomain(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_TRUE(FailedWith((*adapter)->CreateProtectionDomain().status(), ErrorReason::DEVICE_FAILED));
  const auto domain = (*adapter)->CreateProtectionDomain();
  ASSERT_TRUE(domain.ok());
  plan_.FailRegister(MakeError(ErrorReason::DEVICE_NOT_CAPABLE), 2);
  EXPECT_TRUE(FailedWith(Register(**domain).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_TRUE(FailedWith(Register(**domain).status(), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_EQ(provider_.live_regions(), 0u);
  const auto region = Register(**domain);
  ASSERT_TRUE(region.ok());
  plan_.FailDeregister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_TRUE(FailedWith((*region)->Deregister(), ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(provider_.live_regions(), 1u) << "a failed deregistration leaves the region as it was";
  EXPECT_TRUE((*region)->Deregister().ok());
}

TEST_F(FaultInjectingTest, ADmabufReachesTheProviderInsideUnlessItsRegistrationIsToFail) {
  const auto adapter = *provider_.OpenAdapter("soft0");
  const auto domain = *adapter->CreateProtectionDomain();
  plan_.FailRegister(MakeError(ErrorReason::DEVICE_FAILED), 1);
  EXPECT_TRUE(FailedWith(domain->RegisterDmabuf({}).status(), ErrorReason::DEVICE_FAILED));
  EXPECT_TRUE(FailedWith(domain->RegisterDmabuf({}).status(), ErrorReason::DEVICE_NOT_CAPABLE))
      << "the soft card has none";
}

TEST_F(FaultInjectingTest, ObjectsOfQueuesFailAsOftenAsPlannedAndLeaveNothing) {
  const auto adapter = *provider_.OpenAdapter("soft0");
  const auto domain = *adapter->CreateProtectionDomain();
  const absl::Status full = MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  plan_.FailCreateCompletionQueue(full, 1);
  EXPECT_TRUE(FailedWith(adapter->CreateCompletionQueue(8).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  const auto queue = adapter->CreateCompletionQueue(8);
  ASSERT_TRUE(queue.ok());
  plan_.FailCreateFastRegion(full, 1);
  EXPECT_TRUE(FailedWith(domain->CreateFastRegion(1, true).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  plan_.FailCreateMemoryWindow(full, 2);
  EXPECT_TRUE(FailedWith(domain->CreateMemoryWindow().status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(FailedWith(domain->CreateMemoryWindow().status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(provider_.live_regions(), 0u);
  plan_.FailCreateQueuePair(full, 1);
  EXPECT_TRUE(FailedWith(domain->CreateQueuePair(kLimits, **queue, **queue, listener_).status(),
                         ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(domain->CreateFastRegion(1, true).ok());
  EXPECT_TRUE(domain->CreateMemoryWindow().ok());
  EXPECT_TRUE(domain->CreateQueuePair(kLimits, **queue, **queue, listener_).ok());
}

TEST_F(FaultInjectingTest, AFailedEnqueueIsARefusalThatTheCardNeverSaw) {
  const Scene scene = NewScene();
  const auto region = *scene.domain->CreateFastRegion(1, true);
  const RemoteToken before = region->remote_token();
  plan_.FailEnqueue(MakeError(ErrorReason::DEVICE_FAILED), 1);
  const auto refused = scene.pair->Enqueue({.work = FastRegisterWork{.region = region}});
  EXPECT_TRUE(FailedWith(refused.status(), ErrorReason::DEVICE_FAILED));
  scene.pair->Kick();
  EXPECT_TRUE(listener_.statuses.empty());
  EXPECT_EQ(region->remote_token(), before);
  EXPECT_TRUE(scene.pair->Enqueue({.work = ReceiveWork{}}).ok());
}

TEST_F(FaultInjectingTest, AQueuePairIsTheOneInside) {
  const Scene scene = NewScene();
  EXPECT_EQ(scene.pair->state(), QueuePairState::kReadyToSend);
  EXPECT_TRUE(FailedWith(scene.pair->Connect(scene.pair->address()), ErrorReason::QP_NOT_CONNECTABLE));
  ASSERT_TRUE(scene.pair->Enqueue({.work = ReceiveWork{}}).ok());
  ASSERT_TRUE(scene.pair->Enqueue({.work = SendWork{}}).ok());
  scene.pair->Kick();
  EXPECT_EQ(listener_.statuses, (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kSuccess}));
  ASSERT_TRUE(scene.pair->Enqueue({.work = ReceiveWork{}}).ok());
  scene.pair->Flush();
  EXPECT_EQ(listener_.statuses.back(), NtStatus::kCancelled);
  EXPECT_EQ(scene.pair->state(), QueuePairState::kError);
  EXPECT_TRUE((*scene.queue).Resize(9).ok());
}

// The card takes only its own queue pairs.
TEST_F(FaultInjectingTest, QueuePairsConnectByAddressAtTheProviderInside) {
  const auto adapter = *provider_.OpenAdapter("soft0");
  ASSERT_THAT(adapter->addresses(), ::testing::SizeIs(1));
  const IpAddress ip = adapter->addresses().front();
  const auto domain = *adapter->CreateProtectionDomain();
  const auto queue = *adapter->CreateCompletionQueue(8);
  const auto active_pair = *domain->CreateQueuePair(kLimits, *queue, *queue, listener_);
  const auto passive_pair = *domain->CreateQueuePair(kLimits, *queue, *queue, listener_);
  EXPECT_EQ(*adapter->LocateQueuePair(active_pair->address()), ip);
  const auto requests = std::make_shared<RecordingRequests>();
  const auto listener = *adapter->Listen({.ip = ip, .port = 1}, requests);
  const auto events = std::make_shared<RecordingConnector>();
  const auto active = *adapter->CreateConnector(events);
  ASSERT_TRUE(active->Connect(*active_pair, {.local = {.ip = ip, .port = 2}, .peer = {.ip = ip, .port = 1}}, {}).ok());
  const RecordingRequests::Taken taken = requests->Take();
  ASSERT_TRUE(taken.request.connector->Accept(*passive_pair, {}).ok());
  ASSERT_EQ(events->WaitFor(1), Events{"accepted"});
  ASSERT_TRUE(active->CompleteConnect({}).ok());
  EXPECT_EQ(taken.events->WaitFor(1), Events{"established"});
  EXPECT_EQ(passive_pair->state(), QueuePairState::kReadyToSend);
  ASSERT_TRUE(taken.request.connector->Disconnect().ok());
  EXPECT_EQ(events->WaitFor(3), (Events{"accepted", "established", "disconnected"}));
}

// The card accepts only its own region objects.
TEST_F(FaultInjectingTest, AWindowIsBoundToTheRegionInside) {
  const Scene scene = NewScene();
  const std::shared_ptr<DeviceMemoryRegion> region = *Register(*scene.domain);
  const auto window = *scene.domain->CreateMemoryWindow();
  const BindWork bind{.window = window, .region = region, .base = {kNdkPageBytes}, .length = kNdkPageBytes};
  ASSERT_TRUE(scene.pair->Enqueue({.work = bind}).ok());
  scene.pair->Kick();
  EXPECT_EQ(listener_.statuses, std::vector<NtStatus>{NtStatus::kSuccess});
  EXPECT_TRUE(FailedWith(region->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  window->Retire();
  EXPECT_TRUE(region->Deregister().ok());
}

}  // namespace
}  // namespace rnicd::provider
