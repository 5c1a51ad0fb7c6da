#include "client/cpp/queue_pair.h"

#include <chrono>
#include <future>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory_window.h"

namespace rnicd::inline client {
namespace {

class QueuePairTest : public testing::Test {
 protected:
  absl::StatusOr<QueuePair> Create(const QueuePairOptions& options) {
    return QueuePair::Create(*queue_, *queue_, options);
  }
  // Made and connected to itself.
  QueuePair Connected(const QueuePairOptions& options) {
    absl::StatusOr<QueuePair> pair = Create(options);
    EXPECT_TRUE(pair.ok() && pair->Connect(pair->address()).ok());
    return *std::move(pair);
  }

  FakeDaemon daemon_;
  absl::StatusOr<Client> client_ = Client::Connect({.socket_dir = daemon_.socket_dir()});
  absl::StatusOr<CompletionQueue> queue_ = CompletionQueue::Create(*client_, 16);
};

TEST_F(QueuePairTest, GoesThroughItsStatesAndIsGivenBack) {
  {
    auto pair = Create({});
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->address().size(), 6u);
    EXPECT_EQ(*pair->State(), QueuePairState::kInit);
    EXPECT_TRUE(FailedWith(pair->Connect("made up"), ErrorReason::QP_ADDRESS_UNKNOWN));
    EXPECT_TRUE(FailedWith(pair->Disconnect(), ErrorReason::QP_NOT_CONNECTED));
    ASSERT_TRUE(pair->Connect(pair->address()).ok());
    EXPECT_EQ(*pair->State(), QueuePairState::kReadyToSend);
    ASSERT_TRUE(pair->Flush().ok());
    EXPECT_EQ(*pair->State(), QueuePairState::kError);
    EXPECT_EQ(daemon_.state().LiveOthers(), 2u);
  }
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
}

TEST_F(QueuePairTest, RefusedCreationLeavesNothing) {
  EXPECT_TRUE(FailedWith(Create({.inline_data_size = 513}).status(), ErrorReason::ABOVE_ADAPTER_LIMIT));
  const CompletionQueue taken = *std::move(queue_);
  EXPECT_EQ(ErrorInfoOf(QueuePair::Create(*queue_, taken, {}).status()).field, "receive_cq_id");
  EXPECT_EQ(ErrorInfoOf(QueuePair::Create(taken, *queue_, {}).status()).field, "initiator_cq_id");
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
}

TEST_F(QueuePairTest, QueuesOfTwoSessionsDoNotMakeAPair) {
  const auto other = Client::Connect({.socket_dir = daemon_.socket_dir()});
  const auto queue = CompletionQueue::Create(*other, 16);
  EXPECT_TRUE(FailedWith(QueuePair::Create(*queue_, *queue, {}).status(), ErrorReason::OBJECT_NOT_FOUND));
}

TEST_F(QueuePairTest, ChainIsPostedInOrderAndCompletes) {
  QueuePair pair = Connected({.qp_context = 3});
  const auto outcome = pair.Post(
      WorkChain().Send({}, {.context = 1}).Send({}, {.flags = kOpFlagSilentSuccess}).Send({}, {.context = 2}));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->posted, 3u);
  EXPECT_TRUE(outcome->failure.ok());
  EXPECT_TRUE(outcome->issued_tokens.empty());
  const auto first = queue_->Poll(1);
  ASSERT_TRUE(first.ok() && first->size() == 1);
  EXPECT_EQ(first->front().qp_context, 3u);
  EXPECT_EQ(first->front().request_context, 1u);
  EXPECT_EQ(queue_->Poll(16)->front().request_context, 2u);
  EXPECT_TRUE(queue_->Poll(16)->empty());
}

TEST_F(QueuePairTest, RefusedRequestEndsTheChainAndIsNamed) {
  QueuePair pair = Connected({});
  const auto outcome = pair.Post(WorkChain().Send({}, {}).Send({}, {.flags = kFakeBadFlag}).Send({}, {}));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->posted, 1u);
  EXPECT_TRUE(FailedWith(outcome->failure, ErrorReason::FLAGS_UNKNOWN));
  EXPECT_EQ(ErrorInfoOf(outcome->failure).field, "requests[1].flags");
}

TEST_F(QueuePairTest, ChainThatCannotBeSentIsRefusedAsAWhole) {
  QueuePair pair = Connected({});
  EXPECT_TRUE(FailedWith(pair.Post(WorkChain()).status(), ErrorReason::BATCH_SIZE));
  const absl::Status status = pair.Post(WorkChain().Send({}, {}).Send({{.length = 1ull << 32}}, {})).status();
  EXPECT_TRUE(FailedWith(status, ErrorReason::TRANSFER_TOO_LONG));
  EXPECT_EQ(ErrorInfoOf(status).field, "requests[1].send.sges");
  EXPECT_TRUE(queue_->Poll(1)->empty());
}

TEST_F(QueuePairTest, FastRegisterInvalidateAndBindNameTheirObjects) {
  QueuePair pair = Connected({});
  const auto memory = Memory::Allocate(*client_, {.size = 4 * kNdkPageBytes});
  const auto mapping = LogicalMapping::Build(*memory, memory->bytes().subspan(100, 5000));
  const auto region = FastRegion::Create(*client_, {.max_pages = 4, .remote_access = true});
  const auto normal = MemoryRegion::Register(*memory, 0);
  const auto window = MemoryWindow::Create(*client_);
  ASSERT_TRUE(mapping.ok() && region.ok() && normal.ok() && window.ok());
  const auto outcome = pair.Post(WorkChain()
                                     .FastRegister(*region, mapping->AsRegistration(), {.flags = kOpFlagRemoteWrite})
                                     .Invalidate(*region, {})
                                     .Bind(*normal, *window, normal->base_address(), 10, {.flags = kOpFlagRemoteRead})
                                     .Invalidate(*window, {}));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->TokenOf(0).value, 0x100u);
  EXPECT_EQ(outcome->TokenOf(1).value, 0u);
  EXPECT_EQ(outcome->TokenOf(2).value, 0x102u);
  const v1::PostRequest sent = daemon_.queues().LastPost();
  const v1::WorkRequest::FastRegister& fast_register = sent.requests(0).fast_register();
  EXPECT_EQ(fast_register.mr_id(), region->id().value);
  EXPECT_EQ(fast_register.adapter_page_array_size(), 2);
  EXPECT_EQ(fast_register.adapter_page_array(1), mapping->pages()[1].value);
  EXPECT_EQ(fast_register.fbo(), 100u);
  EXPECT_EQ(fast_register.length(), 5000u);
  EXPECT_EQ(fast_register.base_virtual_address(), memory->address().value + 100);
  EXPECT_EQ(sent.requests(1).invalidate().mr_id(), region->id().value);
  EXPECT_EQ(sent.requests(2).bind().mr_id(), normal->id().value);
  EXPECT_EQ(sent.requests(2).bind().mw_id(), window->id().value);
  EXPECT_EQ(sent.requests(2).bind().virtual_address(), memory->address().value);
  EXPECT_EQ(sent.requests(2).bind().length(), 10u);
  EXPECT_EQ(sent.requests(3).invalidate().mw_id(), window->id().value);
}

TEST_F(QueuePairTest, DisconnectionCallsBackAndTheCallbackMayDropThePair) {
  std::promise<void> told;
  absl::StatusOr<QueuePair> pair = absl::UnknownError("none yet");
  pair = Create({.on_disconnected = [&] {
    pair = absl::CancelledError();
    told.set_value();
  }});
  ASSERT_TRUE(pair.ok());
  daemon_.Disconnect(pair->id().value);
  ASSERT_EQ(told.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
}

TEST_F(QueuePairTest, ClosedOrMovedFromPairRefusesEveryCall) {
  auto pair = Create({});
  QueuePair taken = *std::move(pair);
  EXPECT_TRUE(taken.Close().ok());
  EXPECT_EQ(daemon_.state().LiveOthers(), 1u);
  for (QueuePair* gone : {&*pair, &taken}) {
    EXPECT_EQ(gone->id(), QueuePairId{});
    EXPECT_TRUE(gone->address().empty());
    EXPECT_TRUE(FailedWith(gone->State().status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Connect("x"), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Disconnect(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Flush(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Post(WorkChain().Send({}, {})).status(), ErrorReason::OBJECT_NOT_FOUND));
    EXPECT_TRUE(FailedWith(gone->Close(), ErrorReason::OBJECT_NOT_FOUND));
  }
}

}  // namespace
}  // namespace rnicd::inline client
