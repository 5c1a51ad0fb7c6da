// What the tokens of regions, fast registrations and windows reach and when, and when their backing is released.

#include <atomic>
#include <set>

#include "base/system/os.h"
#include "tests/provider_contract/contract_fixture.h"

namespace rnicd::provider {
namespace {

// A request that fails ends its connection, so there is a second one between the same domains.
class RegistrationContract : public ProviderContract {
 protected:
  RegistrationContract() {
    Connect(near_, far_);
    Connect(near_too_, far_too_);
  }

  std::shared_ptr<DeviceFastRegion> NewRegion() {
    auto region = near_.domain().CreateFastRegion(16, true);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  std::shared_ptr<DeviceMemoryWindow> NewWindow() {
    auto window = near_.domain().CreateMemoryWindow();
    EXPECT_TRUE(window.ok()) << window.status();
    return *std::move(window);
  }
  // Posts the request, waits until it is complete, and answers its status.
  static NtStatus StatusOf(ProviderSide& side, WorkRequest request) {
    const size_t count = side.initiated().size() + 1;
    side.Post(std::move(request));
    EXPECT_TRUE(side.Initiated(count));
    return side.initiated().size() == count ? side.initiated().back().status : NtStatus::kPending;
  }
  static ScatterGatherEntry EntryOf(const DeviceFastRegion& region, uint32_t length) {
    return {.address = {kSideBase}, .length = length, .token = region.local_token()};
  }

  ProviderSide near_too_{near_};
  ProviderSide far_too_{far_};
  SharedPages pages_{2};
};

TEST_P(RegistrationContract, ACardWithoutDmabufsSaysSoAndRegistersNothing) {
  const size_t before = card_->registrations();
  const auto buffer = SystemOs().CreateMemoryFile(kNdkPageBytes, kNdkPageBytes);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const absl::Status refused =
      near_.domain().RegisterDmabuf({.base = {kSideBase}, .length = kNdkPageBytes, .file = buffer->get()}).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_NOT_CAPABLE)) << refused;
  EXPECT_EQ(card_->registrations(), before);
}

INSTANTIATE_TEST_SUITE_P(Provider, RegistrationContract, ::testing::ValuesIn(CardKinds()), NameOf);

// --- whose memory ---

TEST_P(RegistrationContract, AnEntryThatIsNotAllowedFailsAtItsOwner) {
  const uint64_t length = near_.pages().bytes().size();
  const auto read_only = near_.Register({.remote_read = true});
  const auto gone = near_.Register(kAllRights);
  ASSERT_TRUE(read_only.ok() && gone.ok() && (*gone)->Deregister().ok());
  EXPECT_TRUE((*gone)->Deregister().ok()) << "a second time it does nothing";
  const auto at_base = [](LocalToken token) {
    return ScatterGatherEntry{.address = {kSideBase}, .length = 8, .token = token};
  };
  const RemoteToken remote = far_.region()->remote_token();
  const WorkRequest kRows[] = {
      Send(1, {at_base({0xdead})}),
      Send(2, {at_base({})}),
      Send(3, {near_.Entry(0, 1), at_base((*gone)->local_token())}),
      Write(4, {at_base(near_.domain().privileged_token())}, remote),
      Write(5, {far_.Entry(0, 1)}, remote),
      Write(6, {near_.Entry(length - 1, 2)}, remote),
      Write(7, {near_.Entry(uint64_t{0} - 1, 1)}, remote),
      Write(8, {near_.Entry(~uint64_t{0} - kSideBase - 1, 8)}, remote),
      Read(9, {at_base((*read_only)->local_token())}, remote),
  };
  for (const WorkRequest& row : kRows) {
    SCOPED_TRACE(row.request_context);
    ProviderSide side(near_);
    ProviderSide peer(far_);
    Connect(side, peer);
    ASSERT_TRUE(side.pair().Enqueue(WorkRequest(row)).ok());
    // A card's own thread may begin the first, which fails, before the second is there.
    const bool accepted = side.pair().Enqueue(Silent(Write(99))).ok();
    side.pair().Kick();
    ASSERT_TRUE(side.Initiated(accepted ? 2 : 1));
    const std::vector<Completion> initiated = side.listener().completions(WorkQueue::kInitiator);
    EXPECT_EQ(initiated[0].status, kViolation);
    EXPECT_FALSE(initiated[0].at_peer);
    if (accepted) {
      EXPECT_EQ(initiated[1].status, kCancelled);
    }
    EXPECT_EQ(side.state(), QueuePairState::kError);
    EXPECT_TRUE(peer.listener().WaitForPeerGone());
    EXPECT_EQ(peer.state(), QueuePairState::kReadyToSend) << "it did nothing wrong";
  }
  EXPECT_EQ(StatusOf(near_, Write(10, {near_.Entry(length - 1, 1), at_base((*read_only)->local_token())}, remote)), kOk)
      << "as far as it reaches";
}

TEST_P(RegistrationContract, AnAccessThatThePeersMemoryRefusesEndsBothSides) {
  const uint64_t length = far_.pages().bytes().size();
  const struct {
    AccessRights rights;
    bool read;
    uint64_t offset;
    bool gone;
  } kRows[] = {
      {{.remote_read = true}, false, 0, false},
      {{.local_write = true, .remote_write = true}, true, 0, false},
      {kAllRights, false, length - 7, false},
      {kAllRights, true, UINT64_MAX - kSideBase, false},
      {kAllRights, true, 0, true},
  };
  for (const auto& row : kRows) {
    ProviderSide side(near_);
    ProviderSide peer(far_);
    Connect(side, peer);
    const auto region = peer.Register(row.rights);
    ASSERT_TRUE(region.ok());
    const RemoteToken token = (*region)->remote_token();
    ASSERT_TRUE(!row.gone || (*region)->Deregister().ok());
    peer.Post(Receive(10));
    side.Post(Receive(20));
    side.Post(Silent(row.read ? Read(1, {side.Entry(0, 8)}, token, row.offset)
                              : Write(1, {side.Entry(0, 8)}, token, row.offset)));
    ASSERT_TRUE(side.Initiated(1) && side.Received(1) && peer.Received(1));
    EXPECT_EQ(side.initiated()[0].status, kViolation);
    EXPECT_TRUE(side.listener().completions(WorkQueue::kInitiator)[0].at_peer);
    EXPECT_EQ(side.received(), (Outcomes{{20, kReceived, kCancelled}}));
    EXPECT_EQ(peer.received(), (Outcomes{{10, kReceived, kCancelled}}));
    EXPECT_TRUE(EndsInError(side) && EndsInError(peer));
    EXPECT_TRUE(peer.listener().WaitForPeerGone());
  }
}

// --- fast registrations ---

TEST_P(RegistrationContract, NothingIsReachedBeforeItsFirstRegistration) {
  const auto region = NewRegion();
  EXPECT_NE(region->local_token(), LocalToken{});
  EXPECT_NE(region->remote_token(), RemoteToken{});
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(StatusOf(near_, Write(1, {EntryOf(*region, 1)}, far_.region()->remote_token())), kViolation);
  EXPECT_EQ(StatusOf(far_too_, Write(1, {far_too_.Entry(0, 1)}, region->remote_token())), kViolation);
  EXPECT_TRUE(EndsInError(near_too_)) << "an access that its memory refused";
}

TEST_P(RegistrationContract, ARegistrationIsReachedFromItsExecutionToItsInvalidation) {
  const auto region = NewRegion();
  const RemoteToken before = region->remote_token();
  near_.Post(Send(1));
  const RemoteToken token = near_.Post(FastRegister(2, region, {pages_.page(0)}));
  EXPECT_NE(token, before);
  EXPECT_EQ(region->remote_token(), token) << "it is known when the request is accepted";
  card_->Settle();
  EXPECT_FALSE(region->registered()) << "it is behind a send that waits";
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kFast, kOk}}));
  EXPECT_TRUE(region->registered());
  EXPECT_EQ(region->remote_token(), token);
  EXPECT_EQ(StatusOf(far_, Write(3, {far_.Entry(0, 8)}, token)), kOk);
  EXPECT_EQ(StatusOf(near_too_, Write(4, {EntryOf(*region, 8)}, far_.region()->remote_token())), kOk);
  EXPECT_EQ(StatusOf(near_too_, Invalidate(5, region)), kOk) << "through any queue pair of its domain";
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(StatusOf(far_, Write(6, {far_.Entry(0, 8)}, token)), kViolation);
  EXPECT_EQ(StatusOf(near_too_, Write(7, {EntryOf(*region, 8)}, far_.region()->remote_token())), kViolation);
}

TEST_P(RegistrationContract, TheLocalTokenStaysAndTheRemoteOneChangesWithEachRegistration) {
  const auto region = NewRegion();
  const LocalToken local = region->local_token();
  std::set<uint32_t> seen;
  for (uint64_t round = 0; round < 128; ++round) {
    const RemoteToken token = near_.Post(FastRegister(round, region, {pages_.page(0)}));
    EXPECT_TRUE(seen.insert(token.value).second) << "a stale token came back to life in round " << round;
    ASSERT_TRUE(near_.Initiated(2 * round + 1));
    EXPECT_EQ(region->local_token(), local);
    ASSERT_EQ(StatusOf(near_, Invalidate(round, region)), kOk) << round;
  }
  EXPECT_EQ(near_.initiated().size(), 256u);
}

TEST_P(RegistrationContract, WhatIsNotRegisteredCannotBeInvalidated) {
  const auto region = NewRegion();
  EXPECT_EQ(StatusOf(near_, Invalidate(1, region)), kInvalid) << "it never was";
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kInvalidated, kInvalid}}));
  EXPECT_EQ(near_.state(), QueuePairState::kError);
  EXPECT_EQ(StatusOf(near_too_, FastRegister(2, region, {pages_.page(0)})), kOk);
  EXPECT_EQ(StatusOf(near_too_, Invalidate(3, region)), kOk);
  EXPECT_EQ(StatusOf(near_too_, Invalidate(4, region)), kInvalid) << "it is not any more";
  EXPECT_EQ(near_too_.state(), QueuePairState::kError);
}

TEST_P(RegistrationContract, ASecondRegistrationFailsAndLeavesTheFirst) {
  const auto region = NewRegion();
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(0)}));
  ASSERT_TRUE(near_.Initiated(1));
  const size_t registrations = card_->registrations();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  EXPECT_EQ(StatusOf(near_, FastRegister(2, region, {pages_.page(1)}, kAllRights, std::move(owned))), kInvalid);
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(card_->registrations(), registrations);
  EXPECT_TRUE(region->registered());
  EXPECT_EQ(StatusOf(far_too_, Write(3, {far_too_.Entry(0, 8)}, token)), kOk);
}

TEST_P(RegistrationContract, ARefusedRequestChangesNoToken) {
  ProviderSide small(provider(), adapter(), {.initiator_depth = 1});
  const std::shared_ptr<DeviceFastRegion> region = *small.domain().CreateFastRegion(16, true);
  const std::shared_ptr<DeviceMemoryWindow> window = *small.domain().CreateMemoryWindow();
  const RemoteToken region_token = region->remote_token();
  const RemoteToken window_token = window->remote_token();
  const size_t registrations = card_->registrations();
  const auto owned = std::make_shared<int>(1);
  const auto refuses = [&](ErrorReason reason) {
    return small.Refuses(FastRegister(1, region, {pages_.page(0)}, kAllRights, owned), reason) &&
           small.Refuses(Bind(2, window, small.region(), 0, kNdkPageBytes, owned), reason);
  };
  EXPECT_TRUE(refuses(ErrorReason::QP_NOT_CONNECTED));
  ASSERT_TRUE(small.ConnectTo(small).ok());
  small.Post(Send(3));
  EXPECT_TRUE(refuses(ErrorReason::QUEUE_FULL));
  EXPECT_EQ(region->remote_token(), region_token);
  EXPECT_EQ(window->remote_token(), window_token);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(card_->registrations(), registrations);
}

TEST_P(RegistrationContract, TheBackingLivesAsLongAsTheRegistration) {
  const auto region = NewRegion();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  std::atomic<bool> in_time = false;
  near_.listener().on_completion = [&](const Completion& completion) {
    if (completion.type == kInvalidated) {
      in_time = backing.expired();
    }
  };
  EXPECT_EQ(StatusOf(near_, FastRegister(1, region, {pages_.page(0)}, kAllRights, std::move(owned))), kOk);
  EXPECT_FALSE(backing.expired());
  EXPECT_EQ(StatusOf(near_, Invalidate(2, region)), kOk);
  EXPECT_TRUE(in_time) << "released before the invalidation is reported";
}

TEST_P(RegistrationContract, RetireEndsTheRegistrationForGood) {
  const auto region = NewRegion();
  const size_t registrations = card_->registrations();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  const RemoteToken token = near_.Post(FastRegister(1, region, {pages_.page(0)}, kAllRights, std::move(owned)));
  ASSERT_TRUE(near_.Initiated(1));
  near_.Post(Send(2));
  near_.Post(FastRegister(3, region, {pages_.page(0)}));
  region->Retire();
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(StatusOf(far_too_, Write(4, {far_too_.Entry(0, 1)}, token)), kViolation);
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(3));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kFast, kOk}, {2, kSent, kOk}, {3, kFast, kInvalid}}));
  ProviderSide sibling(near_);
  ASSERT_TRUE(sibling.ConnectTo(sibling).ok());
  EXPECT_EQ(StatusOf(sibling, Invalidate(5, region)), kInvalid);
  region->Retire();
  EXPECT_FALSE(region->registered());
  EXPECT_EQ(card_->registrations(), registrations + 1) << "that of the sibling's memory";
}

TEST_P(RegistrationContract, AFlushedRegistrationOrBindNeverHappens) {
  const auto region = NewRegion();
  const auto window = NewWindow();
  const size_t registrations = card_->registrations();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  near_.Post(Send(1));
  const RemoteToken token = near_.Post(FastRegister(2, region, {pages_.page(0)}, kAllRights, owned));
  near_.Post(Bind(3, window, near_.region(), 0, kNdkPageBytes, std::move(owned)));
  near_.Post(Send(4));
  near_.pair().Flush();
  ASSERT_TRUE(near_.Initiated(4));
  EXPECT_EQ(
      near_.initiated(),
      (Outcomes{{1, kSent, kCancelled}, {2, kFast, kCancelled}, {3, kBound, kCancelled}, {4, kSent, kCancelled}}));
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(card_->registrations(), registrations);
  EXPECT_EQ(StatusOf(far_too_, Write(5, {far_too_.Entry(0, 1)}, token)), kViolation);
  EXPECT_TRUE(near_.region()->Deregister().ok()) << "no window is bound to it";
}

// --- reads that invalidate ---

TEST_P(RegistrationContract, AReadMayInvalidateTheRegistrationOfItsFirstSink) {
  for (const uint32_t length : {16u, 0u}) {
    const auto region = NewRegion();
    near_.Post(Silent(FastRegister(1, region, {pages_.page(0)})));
    ASSERT_TRUE(Eventually([&region] { return region->registered(); }));
    EXPECT_EQ(StatusOf(near_, ReadAndInvalidate(2, {EntryOf(*region, length), near_.Entry(0, 4)},
                                                far_.region()->remote_token())),
              kOk)
        << length;
    EXPECT_EQ(near_.initiated().back(), (Outcome{2, kReadOp, kOk}));
    EXPECT_FALSE(region->registered()) << length;
  }
}

TEST_P(RegistrationContract, ARegistrationThatIsForLongerCannotBeInvalidatedByARead) {
  EXPECT_EQ(StatusOf(near_, ReadAndInvalidate(1, {near_.Entry(0, 16)}, far_.region()->remote_token())), kInvalid);
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kReadOp, kInvalid}}));
  EXPECT_EQ(StatusOf(near_too_, Write(2, {near_.Entry(0, 16)}, far_.region()->remote_token())), kOk)
      << "its token works on";
}

// --- windows ---

TEST_P(RegistrationContract, ADeregisteredRegionCannotBeBound) {
  const auto window = NewWindow();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  near_.Post(Send(1));
  near_.Post(Bind(2, window, near_.region(), 0, kNdkPageBytes, std::move(owned)));
  ASSERT_TRUE(near_.region()->Deregister().ok()) << "it is not bound yet";
  far_.Post(Receive(10));
  ASSERT_TRUE(near_.Initiated(2));
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kSent, kOk}, {2, kBound, kInvalid}}));
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(StatusOf(near_too_, Invalidate(3, window)), kInvalid) << "it is not bound";
}

TEST_P(RegistrationContract, ABoundWindowKeepsItsRegionAndCannotBeBoundAgain) {
  const auto window = NewWindow();
  EXPECT_EQ(StatusOf(near_, Bind(1, window, near_.region())), kOk);
  const size_t registrations = card_->registrations();
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS));
  EXPECT_EQ(StatusOf(far_, Write(2, {far_.Entry(0, 1)}, window->remote_token())), kOk) << "a refusal changes nothing";
  EXPECT_EQ(StatusOf(near_too_, Write(3, {near_.Entry(0, 1)}, far_.region()->remote_token())), kOk) << "nor here";
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  EXPECT_EQ(StatusOf(near_, Bind(4, window, near_.region(), 0, kNdkPageBytes, std::move(owned))), kInvalid);
  EXPECT_EQ(near_.initiated(), (Outcomes{{1, kBound, kOk}, {4, kBound, kInvalid}}));
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(card_->registrations(), registrations);
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS)) << "the first one stands";
  window->Retire();
  EXPECT_TRUE(near_.region()->Deregister().ok());
}

TEST_P(RegistrationContract, TheBackingLivesAsLongAsTheBinding) {
  const auto window = NewWindow();
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> backing = owned;
  EXPECT_EQ(StatusOf(near_, Bind(1, window, near_.region(), 0, kNdkPageBytes, std::move(owned))), kOk);
  EXPECT_FALSE(backing.expired());
  const RemoteToken token = window->remote_token();
  EXPECT_EQ(StatusOf(near_, Invalidate(2, window)), kOk);
  EXPECT_TRUE(backing.expired());
  EXPECT_EQ(StatusOf(near_, Bind(3, window, near_.region())), kOk);
  EXPECT_NE(window->remote_token(), token) << "another binding, another token";
}

// --- sends that invalidate ---

TEST_P(RegistrationContract, ASendMayInvalidateARegistrationOrWindowOfTheReceiver) {
  const auto region = NewRegion();
  const auto window = NewWindow();
  std::atomic<bool> in_time = true;
  near_.listener().on_completion = [&](const Completion& completion) {
    in_time = in_time && (completion.type != OperationType::kReceiveAndInvalidate || !region->registered());
  };
  near_.Post(FastRegister(1, region, {pages_.page(0)}));
  near_.Post(Bind(2, window, near_.region()));
  ASSERT_TRUE(near_.Initiated(2));
  size_t count = 0;
  for (const RemoteToken token : {region->remote_token(), window->remote_token()}) {
    near_.Post(Receive(10, {near_.Entry(0, 8)}));
    EXPECT_EQ(StatusOf(far_, Send(3, {far_.Entry(0, 4)}, {.invalidate = token})), kOk);
    ASSERT_TRUE(near_.Received(++count));
    const Completion received = near_.listener().completions(WorkQueue::kReceive).back();
    EXPECT_EQ(received.type, OperationType::kReceiveAndInvalidate);
    EXPECT_EQ(received.status, kOk);
    EXPECT_EQ(received.invalidated, token);
    EXPECT_EQ(received.bytes, 4u);
  }
  EXPECT_TRUE(in_time) << "invalid before the receive is reported";
  EXPECT_FALSE(region->registered());
  EXPECT_TRUE(near_.region()->Deregister().ok()) << "no window is bound to it any more";
}

TEST_P(RegistrationContract, ASendThatInvalidatesWhatItCannotEndsBothSides) {
  const auto window = NewWindow();
  const auto idle = NewRegion();
  const std::shared_ptr<DeviceFastRegion> foreign = *far_.domain().CreateFastRegion(16, true);
  far_.Post(FastRegister(1, foreign, {pages_.page(0)}));
  near_.Post(Bind(2, window, near_.region()));
  ASSERT_TRUE(far_.Initiated(1) && near_.Initiated(1));
  for (const RemoteToken token : {RemoteToken{0xdead}, RemoteToken{}, near_.region()->remote_token(),
                                  idle->remote_token(), foreign->remote_token(), window->remote_token()}) {
    SCOPED_TRACE(token.value);
    ProviderSide receiver(near_);
    ProviderSide sender(far_);
    Connect(receiver, sender);
    receiver.Post(Receive(10));
    receiver.Post(Receive(11));
    EXPECT_EQ(StatusOf(sender, Send(3, {}, {.invalidate = token})), NtStatus::kRemoteResources);
    ASSERT_TRUE(receiver.Received(2));
    EXPECT_EQ(receiver.received(), (Outcomes{{10, kReceived, kInvalid}, {11, kReceived, kCancelled}}));
    EXPECT_TRUE(EndsInError(receiver) && EndsInError(sender));
  }
  EXPECT_TRUE(foreign->registered());
  EXPECT_TRUE(FailedWith(near_.region()->Deregister(), ErrorReason::REGION_HAS_WINDOWS))
      << "bound on another connection";
}

}  // namespace
}  // namespace rnicd::provider
