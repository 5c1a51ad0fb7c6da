// A card that refuses, fails, is silent, or is pulled out.

#include "tests/networkdirect_model/model_fixture_test.h"

namespace rnicd::provider {
namespace {

class Failures : public OnModel {
 protected:
  explicit Failures(const NetworkDirectOptions& options = {}) : OnModel(options) {}
};

// A card that is given up in the tick after a failure.
class SilentCard : public Failures {
 protected:
  SilentCard() : Failures({.card_timeout = std::chrono::milliseconds(0)}) {}
};

TEST_F(Failures, WhatCannotBeMadeIsAnErrorAndLeavesNothing) {
  const std::unique_ptr<DeviceAdapter> adapter = *provider().OpenAdapter(kModelAdapter);
  for (const char* const method : {"IND2Provider::OpenAdapter", "IND2Adapter::CreateOverlappedFile"}) {
    const uint64_t objects = control().Count().objects;
    control().FailNext(method, kNdInsufficientResources, 0, 1);
    const absl::Status status = adapter->CreateProtectionDomain().status();
    EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_OUT_OF_RESOURCES)) << method << status;
    EXPECT_EQ(control().Count().objects, objects) << method;
  }
  const std::unique_ptr<DeviceProtectionDomain> domain = *adapter->CreateProtectionDomain();
  const std::unique_ptr<DeviceCompletionQueue> queue = *adapter->CreateCompletionQueue(16);
  RecordingListener listener;
  for (const char* const method : {"IND2Adapter::CreateCompletionQueue", "IND2Adapter::CreateQueuePair"}) {
    const uint64_t objects = control().Count().objects;
    control().FailNext(method, kNdNotSupported, 0, 1);
    const absl::Status status = domain->CreateQueuePair(kRoomyLimits, *queue, *queue, listener).status();
    EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_NOT_CAPABLE)) << method << status;
    EXPECT_EQ(control().Count().objects, objects) << method;
  }
  SharedPages pages(1);
  std::span<std::byte> run = pages.bytes();
  for (const char* const method : {"IND2Adapter::CreateMemoryRegion", "IND2MemoryRegion::Register"}) {
    for (const ModelPending pending : {ModelPending::kInline, ModelPending::kPending}) {
      control().SetPending(pending);
      control().FailNext(method, kNdInvalidParameter, 0, 1);
      const absl::Status status =
          domain->RegisterMemory({.base = {kSideBase}, .length = run.size(), .runs = {&run, 1}, .rights = kAllRights})
              .status();
      EXPECT_TRUE(FailedWith(status, ErrorReason::DEVICE_FAILED)) << method << status;
      EXPECT_EQ(provider().live_regions(), 0u) << method;
    }
  }
}

TEST_F(Failures, ARefusedDeregistrationChangesNothing) {
  ProviderSide here(provider(), kModelAdapter);
  ProviderSide there(provider(), kModelAdapter);
  Connect(here, there);
  control().FailNext("IND2MemoryRegion::Deregister", kNdUnsuccessful, 0, 1);
  EXPECT_TRUE(FailedWith(there.region()->Deregister(), ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(StatusOf(here, Write(1, {here.Entry(0, 8)}, there.region()->remote_token())), kOk);
  EXPECT_TRUE(there.region()->Deregister().ok());
  EXPECT_TRUE(there.region()->Deregister().ok()) << "a second call does nothing";
  EXPECT_EQ(StatusOf(here, Write(2, {here.Entry(0, 8)}, there.region()->remote_token())), kViolation);
}

TEST_F(Failures, ADeregistrationRefusedToTheEndIsRetriedByTheDomain) {
  {
    ProviderSide side(provider(), kModelAdapter);
    control().FailNext("IND2MemoryRegion::Deregister", kNdUnsuccessful, 0, 1);
  }
  EXPECT_EQ(control().Count().regions, 0u);
  EXPECT_EQ(provider().live_regions(), 0u);
}

TEST_F(Failures, AConnectionThatCannotBeMadeIsFoundByBothSides) {
  for (const char* const method : {"IND2Connector::Connect", "IND2Connector::Accept", "IND2Connector::CompleteConnect",
                                   "IND2Adapter::CreateConnector", "IND2Connector::Bind"}) {
    ProviderSide first(provider(), kModelAdapter);
    ProviderSide second(provider(), kModelAdapter);
    first.Post(Receive(10));
    ASSERT_TRUE(first.ConnectTo(second).ok());
    first.Post(Send(1));
    // The listener needs a connector, too.
    const uint32_t skip = std::string_view(method) == "IND2Adapter::CreateConnector" ? 1 : 0;
    control().FailNext(method, kNdIoTimeout, skip, 1);
    (void)second.ConnectTo(first);
    ASSERT_TRUE(first.Initiated(1)) << method;
    EXPECT_EQ(first.initiated()[0].status, NtStatus::kIoTimeout) << method;
    EXPECT_TRUE(first.listener().WaitForPeerGone()) << method;
    // Unless the other had failed before.
    EXPECT_TRUE(Eventually([&] { return second.state() == QueuePairState::kError || second.peer_gone() == 1; }))
        << method;
    control().FailNext(method, kNdSuccess, 0, 0);
  }
}

TEST_F(Failures, WithoutAListenerConnectSaysWhy) {
  for (const char* const method : {"IND2Adapter::CreateListener", "IND2Listener::Bind", "IND2Listener::Listen"}) {
    ProviderSide first(provider(), kModelAdapter);
    ProviderSide second(provider(), kModelAdapter);
    ASSERT_TRUE(first.ConnectTo(second).ok());
    control().FailNext(method, kNdInsufficientResources, 0, 1);
    const absl::Status status = second.ConnectTo(first);
    EXPECT_TRUE(FailedWith(status, ErrorReason::QP_NOT_CONNECTABLE) ||
                FailedWith(status, ErrorReason::DEVICE_OUT_OF_RESOURCES))
        << method << status;
    EXPECT_EQ(second.state(), QueuePairState::kError) << method;
  }
}

TEST_F(Failures, AFailedRequestEndsBothSides) {
  ProviderSide here(provider(), kModelAdapter);
  ProviderSide there(provider(), kModelAdapter);
  Connect(here, there);
  here.Post(Receive(10));
  control().FailNext("completion", kNdInternalError, 0, 1);
  EXPECT_EQ(StatusOf(here, Write(1, {here.Entry(0, 8)}, there.region()->remote_token())), NtStatus::kInternalError);
  ASSERT_TRUE(here.Received(1));
  EXPECT_EQ(here.received()[0].status, NtStatus::kCancelled);
  EXPECT_TRUE(there.listener().WaitForPeerGone());
}

// Also where the cards are still connecting.
TEST_F(Failures, ADisconnectOfThePeerFlushesNoReceives) {
  for (int round = 0; round < 50; ++round) {
    ProviderSide here(provider(), kModelAdapter);
    ProviderSide there(provider(), kModelAdapter);
    if (round == 0) {
      ConnectAndWait(here, there);
    } else {
      Connect(here, there);
    }
    here.Post(Receive(10));
    there.Shutdown();
    ASSERT_TRUE(here.listener().WaitForPeerGone());
    EXPECT_EQ(here.state(), QueuePairState::kReadyToSend);
    here.Post(Receive(11));
    EXPECT_TRUE(here.received().empty());
    EXPECT_EQ(StatusOf(here, Send(1)), NtStatus::kIoTimeout);
    ASSERT_TRUE(here.Received(2)) << "the send has failed";
  }
}

TEST_F(SilentCard, RequestsThatTheCardKeepsAreCancelledAfterATimeout) {
  ProviderSide here(provider(), kModelAdapter);
  ProviderSide there(provider(), kModelAdapter);
  ConnectAndWait(here, there);
  control().Hold(true);
  here.Post(Send(1));
  control().FailNext("IND2QueuePair::Flush", kNdUnsuccessful, 0, 1);
  control().FailNext("IND2Connector::Disconnect", kNdUnsuccessful, 0, 1);
  here.pair().Flush();
  ASSERT_TRUE(here.Initiated(2));
  EXPECT_EQ(here.initiated().back().status, NtStatus::kCancelled);
  control().Hold(false);
}

TEST_F(Failures, ACardThatIsPulledOutEndsEverythingOnIt) {
  auto here = std::make_unique<ProviderSide>(provider(), kModelAdapter);
  auto there = std::make_unique<ProviderSide>(provider(), kOtherModelAdapter);
  ConnectAndWait(*here, *there);
  control().Hold(true);
  here->Post(Send(1));
  here->Post(Receive(10));
  control().Remove(kModelCard);
  ASSERT_TRUE(here->Initiated(2) && here->Received(1));
  EXPECT_EQ(here->initiated().back().status, NtStatus::kCancelled);
  EXPECT_EQ(here->received().back().status, NtStatus::kCancelled);
  EXPECT_TRUE(here->listener().WaitForPeerGone());
  EXPECT_TRUE(there->listener().WaitForPeerGone());
  EXPECT_EQ(removals(), 1);
  EXPECT_EQ(provider().ListAdapters().size(), 1u) << "the other card is still there";
  EXPECT_TRUE(FailedWith(provider().OpenAdapter(kModelAdapter).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(FailedWith(here->Register(kAllRights).status(), ErrorReason::DEVICE_REMOVED));
  EXPECT_TRUE(here->region()->Deregister().ok()) << "the card has released the memory itself";
  here.reset();
  control().Hold(false);
  there.reset();
  EXPECT_EQ(provider().live_regions(), 0u);
}

}  // namespace
}  // namespace rnicd::provider
