// Effects of a failed request on its own side and on the peer.

#include <functional>

#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_fixture_test.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

constexpr NtStatus kRefused = NtStatus::kAccessViolation;
constexpr NtStatus kInvalid = NtStatus::kInvalidDeviceRequest;

class SoftEndpointFailureTest : public ::testing::Test {
 protected:
  SoftEndpointFailureTest() { Connect(near_, far_); }

  std::shared_ptr<SoftFastRegion> FastRegion(const SoftSide& side) {
    return *SoftFastRegion::Create(card_.nic(), side.domain());
  }
  std::shared_ptr<SoftWindow> Window(const SoftSide& side) { return *SoftWindow::Create(card_.nic(), side.domain()); }
  // Registers the side's memory at kBase.
  static WorkRequest FastRegister(uint64_t context, SoftSide& side, const std::shared_ptr<SoftFastRegion>& region,
                                  std::shared_ptr<const void> backing = nullptr) {
    return rnicd::provider::FastRegister(context, region, {side.bytes()}, kAllRights, std::move(backing));
  }
  static WorkRequest Bind(uint64_t context, const std::shared_ptr<SoftWindow>& window,
                          const std::shared_ptr<SoftMemoryRegion>& region) {
    return rnicd::provider::Bind(context, window, region, 0, 100);
  }

  SoftCard card_;
  SoftSide near_{card_};
  SoftSide far_{card_};
};

// --- whose memory ---

TEST_F(SoftEndpointFailureTest, AnEntryThatIsNotAllowedFailsAtItsOwnerAndFlushesTheRest) {
  const auto read_only = near_.Register({});
  const auto dead = near_.Register(kAllRights);
  ASSERT_TRUE(dead->Deregister().ok());
  const RemoteToken remote = far_.region().remote_token();
  const auto entry = [](LocalToken token, uint64_t offset = 0) {
    return ScatterGatherEntry{.address = {SoftSide::kBase + offset}, .length = 8, .token = token};
  };
  const std::function<WorkRequest(uint64_t)> kRows[] = {
      [&](uint64_t context) { return Send(context, {entry({0xdead})}); },
      [&](uint64_t context) { return Send(context, {entry({})}); },
      [&](uint64_t context) { return Send(context, {near_.Entry(0, 1), entry(dead->local_token())}); },
      [&](uint64_t context) { return Write(context, {entry(far_.region().local_token())}, remote); },
      [&](uint64_t context) { return Write(context, {entry({near_.region().remote_token().value})}, remote); },
      [&](uint64_t context) {
        return Write(context, {entry(near_.region().local_token(), 4 * kNdkPageBytes - 7)}, remote);
      },
      [&](uint64_t context) { return Read(context, {entry(read_only->local_token())}, remote); },
  };
  uint64_t context = 0;
  for (const auto& make : kRows) {
    SoftSide requester(near_, 4 * kNdkPageBytes);
    SoftSide target(card_);
    Connect(requester, target);
    target.Post(Receive(10));
    ASSERT_TRUE(requester.endpoint().Enqueue(make(++context)).ok());
    ASSERT_TRUE(requester.endpoint().Enqueue(Silent(Write(99, {}, {}))).ok());
    requester.endpoint().Run();
    const Outcomes outcomes = requester.initiated();
    ASSERT_EQ(outcomes.size(), 2u) << context;
    EXPECT_EQ(outcomes[0].status, kRefused) << context;
    EXPECT_FALSE(requester.listener().completions(WorkQueue::kInitiator)[0].at_peer) << context;
    EXPECT_EQ(outcomes[1], (Outcome{99, kWritten, kCancelled})) << "silent ones too";
    EXPECT_EQ(requester.state(), QueuePairState::kError);
    EXPECT_EQ(target.state(), QueuePairState::kReadyToSend) << "the peer did nothing wrong";
    EXPECT_EQ(target.peer_gone(), 1);
    EXPECT_TRUE(target.received().empty());
  }
}

TEST_F(SoftEndpointFailureTest, AnAccessThePeersMemoryDoesNotAllowEndsBothSides) {
  const struct {
    AccessRights rights;
    bool read;
    uint64_t offset;
    bool dead;
  } kRows[] = {
      {{.remote_read = true}, false, 0, false},                       // Not writable.
      {{.local_write = true, .remote_write = true}, true, 0, false},  // Not readable.
      {kAllRights, false, 4 * kNdkPageBytes, false},                  // Beyond the end.
      {kAllRights, true, UINT64_MAX - SoftSide::kBase, false},        // Wraps.
      {kAllRights, true, 0, true},
  };
  for (const auto& row : kRows) {
    SoftSide requester(card_);
    SoftSide target(card_);
    Connect(requester, target);
    const auto region = target.Register(row.rights);
    const RemoteToken token = region->remote_token();
    ASSERT_TRUE(!row.dead || region->Deregister().ok());
    target.Post(Receive(10));
    target.Post(Receive(11));
    requester.Post(row.read ? Read(1, {requester.Entry(0, 8)}, token, row.offset)
                            : Write(1, {requester.Entry(0, 8)}, token, row.offset));
    ASSERT_EQ(requester.initiated().size(), 1u);
    EXPECT_EQ(requester.initiated()[0].status, kRefused);
    EXPECT_TRUE(requester.listener().completions(WorkQueue::kInitiator)[0].at_peer);
    EXPECT_EQ(requester.state(), QueuePairState::kError);
    EXPECT_EQ(target.state(), QueuePairState::kError);
    EXPECT_EQ(target.received(), (Outcomes{{10, kReceived, kCancelled}, {11, kReceived, kCancelled}}));
    EXPECT_EQ(target.peer_gone(), 1);
    EXPECT_LE(requester.peer_gone(), 1);
  }
}

TEST_F(SoftEndpointFailureTest, NoLocalOrPrivilegedTokenWorksForAPeer) {
  for (const uint32_t token :
       {far_.region().local_token().value, SoftKeyTable::PrivilegedTokenOf(far_.domain()).value, 0u, UINT32_MAX}) {
    SoftSide requester(card_);
    SoftSide target(far_, kNdkPageBytes);
    Connect(requester, target);
    requester.Post(Write(1, {requester.Entry(0, 1)}, RemoteToken{token}));
    EXPECT_EQ(requester.initiated(), (Outcomes{{1, kWritten, kRefused}})) << token;
  }
}

TEST_F(SoftEndpointFailureTest, ARemoteTokenWorksOnQueuePairsOfItsOwnDomainOnly) {
  SoftSide requester(card_);
  SoftSide sibling(far_, kNdkPageBytes);
  Connect(requester, sibling);
  requester.Post(Write(1, {requester.Entry(0, 1)}, far_.region().remote_token()));
  EXPECT_EQ(requester.initiated(), (Outcomes{{1, kWritten, kOk}}));
  near_.Post(Write(2, {near_.Entry(0, 1)}, requester.region().remote_token()));
  EXPECT_EQ(near_.initiated(), (Outcomes{{2, kWritten, kRefused}})) << "alive, but of a domain that is not the peer's";
}

TEST_F(SoftEndpointFailureTest, ATransferThatFailsMovesNothing) {
  near_.SetText(0, "abcdefgh");
  // The first half would fit, the second is beyond the end.
  near_.Post(Write(1, {near_.Entry(0, 8)}, far_.region().remote_token(), 4 * kNdkPageBytes - 4));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kWritten, kRefused}}));
  EXPECT_EQ(far_.Text(4 * kNdkPageBytes - 4, 4), std::string(4, '\0'));
}

// --- receives that do not work out ---

TEST_F(SoftEndpointFailureTest, AReceiveThatFitsExactlyIsFine) {
  far_.Post(Receive(10, {far_.Entry(0, 2), far_.Entry(8, 2)}));
  near_.Post(Send(1, {near_.Entry(0, 4)}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kOk}}));
}

TEST_F(SoftEndpointFailureTest, AReceiveIntoMemoryThatIsNotAllowedEndsBothSides) {
  const auto read_only = far_.Register({.remote_read = true});
  far_.Post(Receive(10, {{.address = {SoftSide::kBase}, .length = 8, .token = read_only->local_token()}}));
  far_.Post(Receive(11));
  near_.Post(Send(1, {near_.Entry(0, 4)}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, kReceived, kRefused}, {11, kReceived, kCancelled}}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, NtStatus::kRemoteResources}}));
}

// --- fast registration and windows, as requests ---

TEST_F(SoftEndpointFailureTest, AFastRegistrationWorksFromItsExecutionToItsInvalidation) {
  const auto region = FastRegion(far_);
  const RemoteToken token = far_.Post(FastRegister(1, far_, region));
  EXPECT_NE(token.value, 0u);
  EXPECT_EQ(region->remote_token(), token);
  near_.SetText(0, "fast");
  near_.Post(Write(2, {near_.Entry(0, 4)}, token, 50));
  EXPECT_EQ(far_.Text(50, 4), "fast");
  far_.Post(Invalidate(3, region));
  EXPECT_EQ(far_.initiated(), (Outcomes{{1, OperationType::kFastRegister, kOk}, {3, OperationType::kInvalidate, kOk}}));
  near_.Post(Write(4, {near_.Entry(0, 4)}, token, 50));
  EXPECT_EQ(near_.initiated().back(), (Outcome{4, kWritten, kRefused}));
}

TEST_F(SoftEndpointFailureTest, ARefusedRequestChangesNoToken) {
  SoftSide small(card_, {.initiator_depth = 1});
  const auto region = FastRegion(small);
  const auto window = Window(small);
  const std::shared_ptr<SoftMemoryRegion> whole = small.Register(kAllRights);
  const RemoteToken region_token = region->remote_token();
  const RemoteToken window_token = window->remote_token();
  EXPECT_TRUE(small.Refuses(FastRegister(1, small, region), ErrorReason::QP_NOT_CONNECTED));
  EXPECT_TRUE(small.Refuses(Bind(2, window, whole), ErrorReason::QP_NOT_CONNECTED));
  SoftSide peer(card_);
  Connect(small, peer);
  small.Post(Send(3));
  EXPECT_TRUE(small.Refuses(FastRegister(4, small, region), ErrorReason::QUEUE_FULL));
  EXPECT_TRUE(small.Refuses(Bind(5, window, whole), ErrorReason::QUEUE_FULL));
  EXPECT_EQ(region->remote_token(), region_token);
  EXPECT_EQ(window->remote_token(), window_token);
}

TEST_F(SoftEndpointFailureTest, AnAcceptedRequestHasItsTokenAtOnceAndItWorksLater) {
  const auto region = FastRegion(near_);
  const RemoteToken before = region->remote_token();
  near_.Post(Send(1));
  const RemoteToken token = near_.Post(FastRegister(2, near_, region));
  EXPECT_NE(token, before);
  EXPECT_EQ(region->remote_token(), token);
  EXPECT_FALSE(region->registered()) << "it is behind a send that waits";
  EXPECT_EQ(card_.nic()->keys().Find(token), nullptr);
  far_.Post(Receive(10));
  EXPECT_TRUE(region->registered());
  EXPECT_NE(card_.nic()->keys().Find(token), nullptr);
}

TEST_F(SoftEndpointFailureTest, ASecondFastRegistrationFailsAndLetsGoOfItsBacking) {
  const auto region = FastRegion(near_);
  auto first = std::make_shared<int>(0);
  auto second = std::make_shared<int>(0);
  const std::weak_ptr<int> first_backing = first;
  const std::weak_ptr<int> second_backing = second;
  near_.Post(FastRegister(1, near_, region, std::move(first)));
  near_.Post(FastRegister(2, near_, region, std::move(second)));
  EXPECT_EQ(near_.initiated(),
            (Outcomes{{1, OperationType::kFastRegister, kOk}, {2, OperationType::kFastRegister, kInvalid}}));
  EXPECT_TRUE(second_backing.expired());
  EXPECT_FALSE(first_backing.expired()) << "a queue pair in error does not end a registration";
  EXPECT_TRUE(region->registered());
}

TEST_F(SoftEndpointFailureTest, LocalRequestsNeedNoPeer) {
  SoftSide alone(card_);
  SoftSide silent(card_);
  ASSERT_TRUE(alone.ConnectTo(silent).ok());
  const auto region = FastRegion(alone);
  alone.Post(FastRegister(1, alone, region));
  alone.Post(Invalidate(2, region));
  EXPECT_EQ(alone.initiated(),
            (Outcomes{{1, OperationType::kFastRegister, kOk}, {2, OperationType::kInvalidate, kOk}}));
}

TEST_F(SoftEndpointFailureTest, AFastRegionIsInvalidatedThroughAnyQueuePairOfItsDomain) {
  SoftSide sibling(far_, kNdkPageBytes);
  SoftSide peer(card_);
  Connect(sibling, peer);
  const auto region = FastRegion(far_);
  far_.Post(FastRegister(1, far_, region));
  sibling.Post(Invalidate(2, region));
  EXPECT_EQ(sibling.initiated(), (Outcomes{{2, OperationType::kInvalidate, kOk}}));
  EXPECT_FALSE(region->registered());
}

TEST_F(SoftEndpointFailureTest, AWindowWorksThroughTheConnectionItWasBoundOn) {
  const auto window = Window(far_);
  const std::shared_ptr<SoftMemoryRegion> whole = far_.Register({.local_write = true});
  const RemoteToken token = far_.Post(Bind(1, window, whole));
  EXPECT_EQ(far_.initiated(), (Outcomes{{1, OperationType::kBind, kOk}}));
  near_.SetText(0, "window");
  near_.Post(Write(2, {near_.Entry(0, 6)}, token, 90));
  EXPECT_EQ(far_.Text(90, 6), "window");

  SoftSide sibling(far_, kNdkPageBytes);
  SoftSide peer(card_);
  Connect(peer, sibling);
  peer.Post(Write(3, {peer.Entry(0, 6)}, token, 90));
  EXPECT_EQ(peer.initiated(), (Outcomes{{3, kWritten, kRefused}})) << "the same domain, another connection";

  near_.Post(Write(4, {near_.Entry(0, 6)}, token, 95));
  EXPECT_EQ(near_.initiated().back(), (Outcome{4, kWritten, kRefused})) << "the window ends at 100";
}

// --- send and invalidate ---

TEST_F(SoftEndpointFailureTest, ASendMayInvalidateAFastRegistrationOfTheReceiver) {
  const auto region = FastRegion(far_);
  const RemoteToken token = far_.Post(FastRegister(1, far_, region));
  far_.Post(Receive(10, {far_.Entry(0, 8)}));
  // The token is invalid before the receive is reported.
  far_.listener().on_completion = [&region](const Completion&) { EXPECT_FALSE(region->registered()); };
  near_.Post(Send(2, {near_.Entry(0, 8)}, {.invalidate = token}));
  EXPECT_EQ(near_.initiated(), (Outcomes{{2, kSent, kOk}}));
  const std::vector<Completion> received = far_.listener().completions(WorkQueue::kReceive);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].type, OperationType::kReceiveAndInvalidate);
  EXPECT_EQ(received[0].status, kOk);
  EXPECT_EQ(received[0].invalidated, token);
  EXPECT_EQ(received[0].bytes, 8u);
}

TEST_F(SoftEndpointFailureTest, ASendMayInvalidateAWindowOfTheReceiver) {
  const auto window = Window(far_);
  const std::shared_ptr<SoftMemoryRegion> whole = far_.Register(kAllRights);
  const RemoteToken token = far_.Post(Bind(1, window, whole));
  far_.Post(Receive(10));
  near_.Post(Send(2, {}, {.invalidate = token}));
  EXPECT_EQ(far_.received(), (Outcomes{{10, OperationType::kReceiveAndInvalidate, kOk}}));
  EXPECT_TRUE(whole->Deregister().ok()) << "no window is bound to it any more";
}

TEST_F(SoftEndpointFailureTest, ASendThatInvalidatesWhatItCannotEndsBothSides) {
  SoftSide stranger(card_);
  const auto foreign = FastRegion(stranger);
  ASSERT_TRUE(stranger.ConnectTo(stranger).ok());
  const RemoteToken foreign_token = stranger.Post(FastRegister(1, stranger, foreign));
  for (const RemoteToken token : {RemoteToken{0xdead}, RemoteToken{}, far_.region().remote_token(),
                                  FastRegion(far_)->remote_token(), foreign_token}) {
    SoftSide sender(card_);
    SoftSide receiver(far_, kNdkPageBytes);
    Connect(sender, receiver);
    receiver.Post(Receive(10, {receiver.Entry(0, 8)}));
    receiver.Post(Receive(11));
    sender.Post(Send(2, {}, {.invalidate = token}));
    EXPECT_EQ(receiver.received(), (Outcomes{{10, kReceived, kInvalid}, {11, kReceived, kCancelled}}));
    EXPECT_EQ(sender.initiated(), (Outcomes{{2, kSent, NtStatus::kRemoteResources}}));
    EXPECT_EQ(receiver.state(), QueuePairState::kError);
  }
  EXPECT_TRUE(foreign->registered());
}

}  // namespace
}  // namespace rnicd::provider
