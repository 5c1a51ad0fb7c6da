#include "provider/soft/net/soft_connector.h"

#include <gmock/gmock.h>

#include "provider/api/provider_side_test.h"
#include "provider/api/recording_connector_test.h"
#include "provider/soft/soft_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Near, on the first of two cards, connects to far, on the second. Nothing happens until the test lets the worker run.
class SoftConnectorTest : public ::testing::Test {
 protected:
  SoftConnectorTest() { listener_ = *far_.adapter().Listen(far_address_, requests_); }
  ~SoftConnectorTest() override { worker_->RunAll(); }

  absl::Status Connect(const NetworkAddress& peer, const ConnectionOffer& offer = {}) {
    return near_connector_->Connect(near_.pair(), {.local = near_address_, .peer = peer}, offer);
  }
  void Request(const ConnectionOffer& offer = {}) {
    ASSERT_TRUE(Connect(far_address_, offer).ok());
    worker_->RunAll();
    taken_ = requests_->Take();
  }
  void Answer(const ConnectionOffer& offer = {}) {
    Request();
    ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), offer).ok());
    worker_->RunAll();
    ASSERT_THAT(near_events_->WaitFor(0), ElementsAre("accepted"));
  }
  Events near_heard() { return near_events_->WaitFor(0); }
  Events far_heard() { return taken_.events->WaitFor(0); }

  KernelRandom random_;
  // Owned by the provider.
  ManualWorker* const worker_ = new ManualWorker();
  bool holds_reads_ = true;
  SoftProvider provider_{{.adapters = 2,
                          .addresses = {*IpAddress::FromText("fd00::1")},
                          .read_delay = std::chrono::milliseconds(1),
                          .hold_reads = [this] { return holds_reads_; }},
                         random_,
                         std::unique_ptr<SoftWorker>(worker_)};
  ProviderSide near_{provider_, "soft0"};
  ProviderSide far_{provider_, "soft1"};
  const NetworkAddress near_address_{.ip = *IpAddress::FromText("fd00::1"), .port = 50000};
  const NetworkAddress far_address_{.ip = *IpAddress::FromText("198.18.0.2"), .port = 7};
  const std::shared_ptr<RecordingRequests> requests_ = std::make_shared<RecordingRequests>();
  std::unique_ptr<DeviceListener> listener_;
  const std::shared_ptr<RecordingConnector> near_events_ = std::make_shared<RecordingConnector>();
  std::unique_ptr<DeviceConnector> near_connector_ = *near_.adapter().CreateConnector(near_events_);
  RecordingRequests::Taken taken_;
};

TEST_F(SoftConnectorTest, EachCardHasItsOptionsAddressOrThatOfItsNumber) {
  EXPECT_THAT(near_.adapter().addresses(), ElementsAre(near_address_.ip));
  EXPECT_THAT(far_.adapter().addresses(), ElementsAre(far_address_.ip));
  EXPECT_EQ(*far_.adapter().LocateQueuePair(near_.pair().address()), near_address_.ip);
  EXPECT_TRUE(FailedWith(near_.adapter().Listen(far_address_, requests_).status(), ErrorReason::ADDRESS_INVALID));
  EXPECT_TRUE(
      FailedWith(near_.adapter().Listen({.ip = near_address_.ip}, requests_).status(), ErrorReason::ADDRESS_INVALID));
}

TEST_F(SoftConnectorTest, PrivateDataHaveTheLengthsOfRoce) {
  Request({.private_data = "a"});
  EXPECT_EQ(taken_.request.offer.private_data, "a" + std::string(55, '\0'));
  ASSERT_TRUE(taken_.request.connector->Reject("").ok());
  worker_->RunAll();
  EXPECT_EQ(near_events_->offer().private_data, std::string(148, '\0'));
  Request();
  ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), {.private_data = "b"}).ok());
  worker_->RunAll();
  EXPECT_EQ(near_events_->offer().private_data, "b" + std::string(195, '\0'));
}

TEST_F(SoftConnectorTest, OnlyTheWorkerCallsListeners) {
  const auto heard = [this] { return std::pair(near_heard().size(), taken_.events ? far_heard().size() : 0); };
  using Heard = std::pair<size_t, size_t>;
  Request();
  ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), {}).ok());
  EXPECT_EQ(heard(), Heard(0, 0));
  worker_->RunAll();
  ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
  EXPECT_EQ(heard(), Heard(1, 0));
  worker_->RunAll();
  EXPECT_EQ(heard(), Heard(2, 1));
  near_connector_ = nullptr;
  EXPECT_EQ(heard(), Heard(2, 1));
  worker_->RunAll();
  EXPECT_EQ(heard(), Heard(2, 2));
}

TEST_F(SoftConnectorTest, AHostWithoutACardIsUnreachable) {
  ASSERT_TRUE(Connect({.ip = *IpAddress::FromText("198.18.0.1"), .port = 7}).ok());
  EXPECT_THAT(near_heard(), IsEmpty());
  worker_->RunAll();
  EXPECT_THAT(near_heard(), ElementsAre("HOST_UNREACHABLE"));
  Request();
}

TEST_F(SoftConnectorTest, TheReadLimitOfTheConnectionIsObeyed) {
  ASSERT_NO_FATAL_FAILURE(Answer({.inbound_read_limit = 1}));
  ASSERT_TRUE(near_connector_->CompleteConnect({.outbound_read_limit = 1}).ok());
  worker_->RunAll();
  ASSERT_THAT(far_heard(), ElementsAre("established"));
  const RemoteToken token = far_.region()->remote_token();
  near_.pages().bytes()[64] = std::byte{7};
  near_.Post(Read(1, {near_.Entry(0, 1)}, token));
  near_.Post(Read(2, {near_.Entry(1, 1)}, token));
  near_.Post(Write(3, {near_.Entry(64, 1)}, token, 64));
  EXPECT_EQ(far_.pages().bytes()[64], std::byte{0}) << "the second read waits for the first";
  holds_reads_ = false;
  ASSERT_TRUE(worker_->RunJob());
  EXPECT_EQ(far_.pages().bytes()[64], std::byte{7});
  worker_->RunAll();
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kOk}, {2, kReadOp, kOk}, {3, kWritten, kOk}}));
}

TEST_F(SoftConnectorTest, AnEndThatComesFirstFailsCompleteConnect) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  taken_.request.connector = nullptr;
  ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
  worker_->RunAll();
  EXPECT_EQ(near_heard(), (Events{"accepted", "CONNECTION_ABORTED"}));
}

TEST_F(SoftConnectorTest, AnEndThatComesLaterDisconnects) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
  taken_.request.connector = nullptr;
  worker_->RunAll();
  EXPECT_EQ(near_heard(), (Events{"accepted", "established", "disconnected"}));
  EXPECT_THAT(far_heard(), IsEmpty());
}

TEST_F(SoftConnectorTest, AQueuePairThatIsGoneAbortsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  far_.Shutdown();
  ASSERT_TRUE(near_connector_->CompleteConnect({}).ok());
  worker_->RunAll();
  EXPECT_EQ(near_heard(), (Events{"accepted", "CONNECTION_ABORTED"}));
  EXPECT_THAT(far_heard(), ElementsAre("CONNECTION_ABORTED"));
}

TEST_F(SoftConnectorTest, AnAcceptThatTheRequestsEndOvertakesFails) {
  Request();
  near_connector_ = nullptr;
  ASSERT_TRUE(taken_.request.connector->Accept(far_.pair(), {}).ok());
  worker_->RunAll();
  EXPECT_THAT(far_heard(), ElementsAre("CONNECTION_ABORTED"));
  EXPECT_EQ(far_.state(), QueuePairState::kInit);
}

}  // namespace
}  // namespace rnicd::provider
