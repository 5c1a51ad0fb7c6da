// Connections of an iWARP card: the kernel moves the queue pairs, and begins and ends a connection for both sides at
// once.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/secrets/random.h"
#include "base/status.h"
#include "provider/api/provider_side_test.h"
#include "provider/api/recording_connector_test.h"
#include "provider/verbs/fake/rdma_cm_fake.h"
#include "provider/verbs/fake/verbs_fake.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::provider {
namespace {

// siw, whose queue pairs a test moves as the kernel does.
class FakeIwarp final : public FakeVerbs {
 public:
  FakeIwarp() : FakeVerbs({Siw()}) {}

  ibv_context* Open(const CardId& card) override {
    ibv_context* const context = FakeVerbs::Open(card);
    device_.transport_type = IBV_TRANSPORT_IWARP;
    context->device = &device_;
    return context;
  }
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr& attributes) override {
    ibv_qp* const pair = FakeVerbs::CreateQp(pd, attributes);
    pairs_.push_back(pair);
    return pair;
  }
  void MakeLastSend() {
    ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = pairs_.back()->qp_num};
    attributes.ah_attr = {.grh = {.dgid = FakeGids()[1].gid, .sgid_index = 1}, .is_global = 1, .port_num = 1};
    EXPECT_EQ(ModifyQp(pairs_.back(), attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attributes.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ModifyQp(pairs_.back(), attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

 private:
  static FakeDevice Siw() {
    FakeDevice device;
    device.attributes.vendor_id = 0x626d74;
    return device;
  }
  ibv_device device_ = {};
  std::vector<ibv_qp*> pairs_;
};

class IwarpConnection : public testing::Test {
 protected:
  static constexpr uint16_t kPort = 4242;
  static inline const Events kMade = {"accepted", "established"};
  static inline const Events kOver = {"accepted", "established", "disconnected"};
  static inline const ConnectionOffer kLimits{.inbound_read_limit = 1, .outbound_read_limit = 1};

  NetworkAddress At(uint16_t port) { return {.ip = near_.adapter().addresses().front(), .port = port}; }
  void Ask(const std::string& data = {}) {
    ASSERT_TRUE(active_->Connect(near_.pair(), {.local = At(50000), .peer = At(kPort)}, {.private_data = data}).ok());
  }
  void TakeRequest(const std::string& data = {}) {
    ASSERT_NO_FATAL_FAILURE(Ask(data));
    passive_ = requests_->Take();
    ASSERT_NE(passive_.request.connector, nullptr);
  }
  void Answer() {
    ASSERT_NO_FATAL_FAILURE(TakeRequest());
    ASSERT_TRUE(passive_.request.connector->Accept(far_.pair(), kLimits).ok());
    ASSERT_EQ(heard_->WaitFor(1), Events{"accepted"});
    ASSERT_EQ(passive_.events->WaitFor(1), Events{"established"});
  }
  void Make() {
    ASSERT_NO_FATAL_FAILURE(Answer());
    ASSERT_TRUE(active_->CompleteConnect(kLimits).ok());
    ASSERT_EQ(heard_->WaitFor(2), kMade);
  }

  FakeIwarp fake_;
  FakeRdmaCm cm_{/*is_iwarp=*/true};
  KernelRandom random_;
  const std::unique_ptr<VerbsProvider> provider_ = *VerbsProvider::Create(
      {.fast_engine = FastEngine::kRegistration}, random_, fake_, [](const AdapterEvent&) {}, &cm_);
  ProviderSide near_{*provider_, "fake0"};
  ProviderSide far_{*provider_, "fake0"};
  const std::shared_ptr<RecordingRequests> requests_ = std::make_shared<RecordingRequests>();
  std::unique_ptr<DeviceListener> listener_ = *far_.adapter().Listen(At(kPort), requests_);
  const std::shared_ptr<RecordingConnector> heard_ = std::make_shared<RecordingConnector>();
  std::unique_ptr<DeviceConnector> active_ = *near_.adapter().CreateConnector(heard_);
  RecordingRequests::Taken passive_;
};

TEST_F(IwarpConnection, IsMadeByTheKernelAndCompletedByTheActiveSide) {
  ASSERT_NO_FATAL_FAILURE(Make());
  EXPECT_EQ(near_.state(), QueuePairState::kReadyToSend);
  EXPECT_EQ(far_.state(), QueuePairState::kReadyToSend);
  for (const uint32_t number : fake_.qp_nums()) {
    EXPECT_EQ(fake_.state(number), IBV_QPS_INIT) << "only the kernel moves it on";
  }
}

TEST_F(IwarpConnection, PrivateDataArriveAsLongAsTheyAre) {
  EXPECT_EQ(near_.adapter().info().max_caller_data, 251u);
  const std::string longest(251, 'd');
  ASSERT_NO_FATAL_FAILURE(TakeRequest(longest));
  EXPECT_EQ(passive_.request.offer.private_data, longest);
  ASSERT_TRUE(passive_.request.connector->Reject("no").ok());
  EXPECT_EQ(heard_->WaitFor(1), Events{"CONNECTION_REFUSED"});
  EXPECT_EQ(heard_->offer().private_data, "no");
}

TEST_F(IwarpConnection, ItsEndFailsBothQueuePairsAndIsHeardByBothSidesAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Make());
  ASSERT_TRUE(active_->Disconnect().ok());
  EXPECT_EQ(heard_->WaitFor(3), kOver);
  EXPECT_EQ(passive_.events->WaitFor(2), (Events{"established", "disconnected"}));
  EXPECT_EQ(far_.state(), QueuePairState::kError);
  EXPECT_TRUE(far_.listener().WaitForPeerGone());
}

TEST_F(IwarpConnection, AnAnswerThatIsTakenBackIsADisconnect) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  ASSERT_TRUE(active_->Reject("too slow").ok());
  EXPECT_EQ(passive_.events->WaitFor(2), (Events{"established", "disconnected"}));
}

TEST_F(IwarpConnection, NobodyListeningIsARefusalThatAllowsAnotherTry) {
  listener_ = nullptr;
  ASSERT_NO_FATAL_FAILURE(Ask());
  EXPECT_EQ(heard_->WaitFor(1), Events{"CONNECTION_REFUSED"});
  listener_ = *far_.adapter().Listen(At(kPort), requests_);
  ASSERT_NO_FATAL_FAILURE(TakeRequest());
}

TEST_F(IwarpConnection, TheSameQueuePairCannotBeBothEnds) {
  ASSERT_NO_FATAL_FAILURE(TakeRequest());
  ASSERT_TRUE(passive_.request.connector->Accept(near_.pair(), kLimits).ok());
  EXPECT_EQ(passive_.events->WaitFor(1), Events{"QP_NOT_CONNECTABLE"});
}

TEST_F(IwarpConnection, NoQueuePairConnectsByItsNumber) {
  EXPECT_TRUE(FailedWith(near_.ConnectTo(far_), ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_TRUE(
      FailedWith(near_.adapter().LocateQueuePair(far_.pair().address()).status(), ErrorReason::DEVICE_NOT_CAPABLE));
}

TEST_F(IwarpConnection, AShortSourceIsNotLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(Make());
  fake_.MakeLastSend();
  fake_.set_automatic(true);
  far_.Post(Send(1, {far_.Entry(0, 16)}));
  ASSERT_TRUE(far_.Initiated(1));
  const std::vector<ibv_sge> entries = fake_.SendHistory(fake_.qp_nums().back()).back().entries;
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].length, 16u);
  EXPECT_EQ(entries[1].length, 0u);
}

TEST_F(IwarpConnection, AReceiveOfNoBytesHasAnEmptyEntry) {
  near_.Post(Receive(1));
  const std::vector<PostedReceive> posted = fake_.PostedReceives(fake_.qp_nums().front());
  ASSERT_EQ(posted.size(), 1u);
  ASSERT_EQ(posted[0].entries.size(), 1u);
  EXPECT_EQ(posted[0].entries[0].length, 0u);
}

TEST_F(IwarpConnection, MemoryIsRegisteredAtTheAddressesThatTheClientHas) {
  size_t regions = 0;
  for (const FakeRegion& region : fake_.regions()) {
    EXPECT_EQ(reinterpret_cast<uint64_t>(region.address), region.iova);
    regions += region.iova == ProviderSide::kBase ? 1 : 0;
  }
  EXPECT_EQ(regions, 2u) << "two clients may have the same addresses";
}

}  // namespace
}  // namespace rnicd::provider
