// Checks at posting of the requests that move bytes, and the outcome of a chain in which one request is refused.

#include <cstring>

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kUnknownFlag = 0x400;
constexpr RemoteToken kSomeToken{0x12345678};

class SessionPostTest : public PostTest {
 protected:
  explicit SessionPostTest(const WorldOptions& options = {}) : PostTest(options) {}

  LocalToken Privileged() { return *owner.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner.domain); }
  static Sge HostSge(LocalToken token, uint64_t address, uint32_t length) {
    return {.address = address, .length = length, .token = token};
  }
  // One request of every kind that needs a connection, each of which passes the checks at posting.
  std::vector<WorkRequest> InitiatorRequests() {
    pages_ = PagesOf(owner.Lam(owner.Memory(1), 1));
    const MemoryRegionId fast = owner.FastRegion();
    return {Send(),
            SendAndInvalidate(kSomeToken),
            Read({}, kRegionBase, kSomeToken),
            Write({}, kRegionBase, kSomeToken),
            FastRegister(fast, pages_),
            Invalidate(fast),
            Bind(owner.RegisteredRegion(), owner.Window())};
  }

 private:
  std::vector<uint64_t> pages_;
};

TEST_F(SessionPostTest, AnUnknownQueuePairIsRefusedAsAWhole) {
  const WorkRequest request = Receive();
  EXPECT_THAT(owner.session->Begin()->pairs().Post(QueuePairId{}, {&request, 1}).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
  EXPECT_THAT(owner.session->Begin()->pairs().Post(peer_pair, {&request, 1}).status(),
              FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
}

TEST_F(SessionPostTest, ARequestWithoutAnOperationIsRefused) {
  ExpectRefused({.request_context = 3}, ErrorReason::FIELD_OUT_OF_RANGE, "operation");
}

TEST_F(SessionPostTest, FlagsThatAnOperationDoesNotTakeAreRefused) {
  for (const uint32_t flag : {kOpFlagRemoteRead, kOpFlagLocalWrite, kOpFlagRemoteWriteBit, kOpFlagReadSink,
                              kOpFlagReadLocalInvalidate, kUnknownFlag, kOpFlagInline | kOpFlagRemoteRead}) {
    ExpectRefused(Send({}, flag), ErrorReason::FLAGS_UNKNOWN, "flags");
    WorkRequest both = SendAndInvalidate(kSomeToken);
    both.flags = flag;
    ExpectRefused(both, ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  for (const uint32_t flag : {kOpFlagSolicit, kOpFlagInline, kOpFlagRemoteRead, kOpFlagReadSink, kUnknownFlag}) {
    ExpectRefused(Read({}, 0, kSomeToken, flag), ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  for (const uint32_t flag : {kOpFlagSolicit, kOpFlagRemoteRead, kOpFlagReadLocalInvalidate, kUnknownFlag}) {
    ExpectRefused(Write({}, 0, kSomeToken, flag), ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  for (const uint32_t flag : {kOpFlagSilentSuccess, kOpFlagReadFence, kOpFlagInline, kOpFlagDefer, kUnknownFlag}) {
    WorkRequest receive = Receive();
    receive.flags = flag;
    ExpectRefused(receive, ErrorReason::FLAGS_UNKNOWN, "flags");
  }
}

TEST_F(SessionPostTest, FlagsThatAnOperationTakesAreNotRefused) {
  owner.MustPost(pair, {Send({}, kOpFlagsOfInitiator | kOpFlagSolicit | kOpFlagInline),
                        Read({}, 0, kSomeToken, kOpFlagsOfInitiator | kOpFlagReadLocalInvalidate),
                        Write({}, 0, kSomeToken, kOpFlagsOfInitiator | kOpFlagInline)});
}

TEST_F(SessionPostTest, BeforeTheConnectionOnlyReceivesAreAccepted) {
  const std::vector<WorkRequest> requests = InitiatorRequests();
  const QueuePairId idle = owner.Pair();
  for (const WorkRequest& request : requests) {
    const PostOutcome outcome = owner.Post(idle, {request});
    EXPECT_EQ(outcome.posted, 0u);
    EXPECT_THAT(outcome.failure, FailsAt(ErrorReason::QP_NOT_CONNECTED, "requests[0]")) << request.operation.index();
    EXPECT_TRUE(outcome.issued_tokens.empty());
  }
  owner.MustPost(idle, {Receive()});
  EXPECT_TRUE(owner.Results().empty());
}

TEST_F(SessionPostTest, AfterAFlushOnlyReceivesAreAcceptedAndTheyAreCancelled) {
  const std::vector<WorkRequest> requests = InitiatorRequests();
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(owner.State(pair), QueuePairState::kError);
  for (const WorkRequest& request : requests) {
    EXPECT_THAT(owner.Post(pair, {request}).failure, FailsAt(ErrorReason::QP_NOT_CONNECTED, "requests[0]"));
  }
  EXPECT_TRUE(owner.Results().empty());
  owner.MustPost(pair, {Receive({}, 8)});
  const auto results = owner.Results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, NtStatus::kCancelled);
  EXPECT_EQ(results[0].request_context, 8u);
  EXPECT_EQ(results[0].qp_context, 71u);
}

TEST_F(SessionPostTest, AFullInitiatorQueueRefusesOneMoreSilentOnesCounted) {
  const PostOutcome outcome =
      owner.Post(pair, {Send(), Send({}, kOpFlagSilentSuccess), Send(), Send({}, kOpFlagSilentSuccess), Send()});
  EXPECT_EQ(outcome.posted, 4u) << "none executes before the peer has posted a receive";
  EXPECT_THAT(outcome.failure, FailsAt(ErrorReason::QUEUE_FULL, "requests[4]"));
  peer.MustPost(peer_pair, {Receive(), Receive()});
  owner.MustPost(pair, {Send(), Send()});
  EXPECT_THAT(owner.Post(pair, {Send()}).failure, FailsAt(ErrorReason::QUEUE_FULL, "requests[0]"));
}

TEST_F(SessionPostTest, AFullReceiveQueueRefusesOneMore) {
  const PostOutcome outcome = owner.Post(pair, {Receive(), Receive(), Receive(), Receive(), Receive()});
  EXPECT_EQ(outcome.posted, 4u);
  EXPECT_THAT(outcome.failure, FailsAt(ErrorReason::QUEUE_FULL, "requests[4]"));
  peer.MustPost(peer_pair, {Send()});
  owner.MustPost(pair, {Receive()});
}

TEST_F(SessionPostTest, AQueueOfNoDepthTakesNothing) {
  CreateQpArguments arguments = owner.PairArguments();
  arguments.limits = {};
  const QueuePairId narrow = owner.Pair(arguments);
  EXPECT_THAT(owner.Post(narrow, {Receive()}).failure, FailsAt(ErrorReason::QUEUE_FULL, "requests[0]"));
  ASSERT_TRUE(owner.session->Begin()->pairs().Connect(narrow, owner.Address(narrow)).ok());
  EXPECT_THAT(owner.Post(narrow, {Send()}).failure, FailsAt(ErrorReason::QUEUE_FULL, "requests[0]"));
}

TEST_F(SessionPostTest, MoreSgesThanTheQueuePairAllowsAreRefused) {
  const Sges three(3);
  ExpectRefused(Send(three), ErrorReason::SGE_COUNT, "send.sges");
  ExpectRefused({.operation = WorkRequest::SendAndInvalidate{.sges = three, .token = kSomeToken}},
                ErrorReason::SGE_COUNT, "send_and_invalidate.sges");
  ExpectRefused(Write(three, 0, kSomeToken), ErrorReason::SGE_COUNT, "write.sges");
  ExpectRefused(Receive(three), ErrorReason::SGE_COUNT, "receive.sges");
}

TEST_F(SessionPostTest, OfAReadOnlyTheAdaptersLimitOfSgesCounts) {
  ExpectRefused(Read(Sges(17), 0, kSomeToken), ErrorReason::SGE_COUNT, "read.sges");
  owner.MustPost(pair, {Read(Sges(16), 0, kSomeToken)});
}

TEST_F(SessionPostTest, MoreBytesThanTheAdapterTransfersAreRefused) {
  constexpr uint32_t kMost = 1U << 30;
  const Sges above = {{.length = kMost}, {.length = 1}};
  const Sges far_above = {{.length = UINT32_MAX}, {.length = UINT32_MAX}};
  const Sges overflow = {{.length = UINT64_MAX}, {.length = 2}};
  for (const Sges& sges : {above, far_above, overflow}) {
    ExpectRefused(Send(sges), ErrorReason::TRANSFER_TOO_LONG, "send.sges");
    ExpectRefused(Read(sges, 0, kSomeToken), ErrorReason::TRANSFER_TOO_LONG, "read.sges");
    ExpectRefused(Write(sges, 0, kSomeToken), ErrorReason::TRANSFER_TOO_LONG, "write.sges");
    ExpectRefused(Receive(sges), ErrorReason::TRANSFER_TOO_LONG, "receive.sges");
  }
  owner.MustPost(pair, {Receive({{.length = kMost - 1}, {.length = 1}})});
}

TEST_F(SessionPostTest, InlineDataAboveTheQueuePairsLimitIsRefused) {
  const std::string bytes(64, 'x');
  ExpectRefused(Send({InlineSge(bytes), InlineSge("y")}, kOpFlagInline), ErrorReason::INLINE_TOO_LONG, "send.sges");
  ExpectRefused(Write({InlineSge(bytes + "y")}, 0, kSomeToken, kOpFlagInline), ErrorReason::INLINE_TOO_LONG,
                "write.sges");
  owner.MustPost(pair, {Send({InlineSge(bytes)}, kOpFlagInline)});
}

TEST_F(SessionPostTest, InlineDataOfAnotherLengthThanAnnouncedIsRefused) {
  Sge shorter = InlineSge("abc");
  shorter.length = 4;
  ExpectRefused(Send({InlineSge("a"), shorter}, kOpFlagInline), ErrorReason::FIELD_OUT_OF_RANGE, "send.sges[1].length");
  ExpectRefused({.flags = kOpFlagInline, .operation = WorkRequest::SendAndInvalidate{.sges = {shorter}}},
                ErrorReason::FIELD_OUT_OF_RANGE, "send_and_invalidate.sges[0].length");
}

TEST_F(SessionPostTest, InlineSgesNeedNeitherTokensNorRoomInTheSgeLimit) {
  const MemoryObjectId memory = peer.Memory(1);
  const MemoryRegionId region = peer.Region(peer.domain);
  const auto registered = peer.Register(region, memory, kPage);
  ASSERT_TRUE(registered.ok());
  peer.MustPost(peer_pair, {Receive({SgeOf(registered->local_token, 16)})});
  std::string bytes = "RDMA";
  Sges sges = {InlineSge(std::string_view(bytes).substr(0, 1)), InlineSge(std::string_view(bytes).substr(1, 1)),
               InlineSge(std::string_view(bytes).substr(2))};
  for (Sge& sge : sges) {
    sge.token = {0xdeadbeef};
    sge.address = 1;
  }
  owner.MustPost(pair, {Send(sges, kOpFlagInline)});
  EXPECT_EQ(std::memcmp((*peer.session->Begin()->memory().Find(memory))->mapping().data(), "RDMA", 4), 0);
  EXPECT_EQ(peer.Results().at(0).bytes, 4u);
}

TEST_F(SessionPostTest, InlineDataIsCopiedWhenItIsPosted) {
  const MemoryObjectId memory = peer.Memory(1);
  const auto registered = peer.Register(peer.Region(peer.domain), memory, kPage);
  ASSERT_TRUE(registered.ok());
  std::string bytes = "first";
  owner.MustPost(pair, {Send({InlineSge(bytes)}, kOpFlagInline)});
  bytes = "other";
  peer.MustPost(peer_pair, {Receive({SgeOf(registered->local_token, 16)})});
  EXPECT_EQ(std::memcmp((*peer.session->Begin()->memory().Find(memory))->mapping().data(), "first", 5), 0);
}

TEST_F(SessionPostTest, AnUnknownLocalTokenIsCheckedWhenTheRequestIsExecuted) {
  owner.MustPost(pair, {Write({SgeOf({0xdeadbeef}, 1)}, 0, kSomeToken)});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kAccessViolation});
}

TEST_F(SessionPostTest, LogicalAddressesMustLieInsideOneMapping) {
  const BuiltLam lam = owner.Lam(owner.Memory(2), 2);
  const uint64_t base = lam.first.value;
  const LocalToken token = Privileged();
  const auto unknown = ErrorReason::LOGICAL_ADDRESS_UNKNOWN;
  ExpectRefused(Send({HostSge(token, base - 1, 1)}), unknown, "send.sges[0].address");
  ExpectRefused(Send({HostSge(token, 0, 0)}), unknown, "send.sges[0].address");
  ExpectRefused(Receive({HostSge(token, base, 1), HostSge(token, base + 2 * kPage, 1)}), unknown,
                "receive.sges[1].address");
  ExpectRefused(Read({HostSge(token, base + kPage, kPage + 1)}, 0, kSomeToken), unknown, "read.sges[0].address");
  ExpectRefused(Write({HostSge(token, base + 1, 1U << 30)}, 0, kSomeToken), unknown, "write.sges[0].address");
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  ExpectRefused(Send({HostSge(token, base, 1)}), unknown, "send.sges[0].address");
}

TEST_F(SessionPostTest, LogicalAddressesOfAnotherAdapterOrSessionAreUnknown) {
  const BuiltLam foreign = peer.Lam(peer.Memory(1), 1);
  const MdlEntry entry{.memory_id = owner.Memory(1), .byte_count = kPage, .virtual_address = {kRegionBase}};
  const auto elsewhere =
      owner.session->Begin()->mappings().Build({.adapter = owner.Adapter(), .chain = {&entry, 1}, .length = kPage});
  ASSERT_TRUE(elsewhere.ok());
  for (const LogicalAddress address : {foreign.first, elsewhere->first}) {
    ExpectRefused(Send({HostSge(Privileged(), address.value, 1)}), ErrorReason::LOGICAL_ADDRESS_UNKNOWN,
                  "send.sges[0].address");
  }
}

TEST_F(SessionPostTest, TheBytesOfAReleasedMappingStayUntilTheRequestIsComplete) {
  const MemoryObjectId memory = owner.Memory(1);
  const BuiltLam lam = owner.Lam(memory, 1);
  std::memcpy((*owner.session->Begin()->memory().Find(memory))->mapping().data(), "kept", 4);
  owner.MustPost(pair, {Send({HostSge(Privileged(), lam.first.value, 4)})});
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(lam.id).ok());
  EXPECT_EQ(owner.session->ledger().used(Resource::kPinnedBytes), kPage);
  const MemoryObjectId sink = peer.Memory(1);
  const auto registered = peer.Register(peer.Region(peer.domain), sink, kPage);
  ASSERT_TRUE(registered.ok());
  peer.MustPost(peer_pair, {Receive({SgeOf(registered->local_token, 4)})});
  EXPECT_EQ(std::memcmp((*peer.session->Begin()->memory().Find(sink))->mapping().data(), "kept", 4), 0);
  EXPECT_EQ(owner.session->ledger().used(Resource::kPinnedBytes), 0u);
}

TEST_F(SessionPostTest, APayloadOfLogicalAddressesIsCountedByItsPiecesUntilItIsComplete) {
  const MemoryObjectId first = owner.Memory(1);
  const MemoryObjectId second = owner.Memory(1);
  const MdlEntry chain[] = {{.memory_id = first, .byte_count = kPage, .virtual_address = {kRegionBase}},
                            {.memory_id = second, .byte_count = kPage, .virtual_address = {kRegionBase + kPage}}};
  const auto lam =
      owner.session->Begin()->mappings().Build({.adapter = owner.adapter, .chain = chain, .length = 2 * kPage});
  ASSERT_TRUE(lam.ok()) << lam.status();
  owner.MustPost(pair, {Send({HostSge(Privileged(), lam->first.value, 2 * kPage), SgeOf({1}, 0)})});
  EXPECT_EQ(owner.session->ledger().used(Resource::kPostedPages), 3u);
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(owner.session->ledger().used(Resource::kPostedPages), 0u);
}

TEST_F(SessionPostTest, ThePrivilegedTokenOfAnotherDomainIsNoPrivilege) {
  const BuiltLam lam = owner.Lam(owner.Memory(1), 1);
  const LocalToken other =
      *owner.session->Begin()->domains().GetPrivilegedMemoryRegionToken(owner.Domain(owner.adapter));
  ASSERT_NE(other, Privileged());
  owner.MustPost(pair, {Write({HostSge(other, lam.first.value, 1)}, 0, kSomeToken)});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kAccessViolation});
}

class StrictSinkTest : public SessionPostTest {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.soft.adapter_flags = kAdapterFlagLoopback;
    return options;
  }
  StrictSinkTest() : SessionPostTest(Options()) {}
};

TEST_F(StrictSinkTest, WhereSinksNeedARightAReadTakesNoLogicalAddress) {
  const uint64_t address = owner.Lam(owner.Memory(1), 1).first.value;
  ExpectRefused(Read({{}, HostSge(Privileged(), address, 1)}, 0, kSomeToken), ErrorReason::READ_SINK_PRIVILEGED,
                "read.sges[1].token");
  owner.MustPost(pair, {Send({HostSge(Privileged(), address, 1)})});
}

TEST_F(SessionPostTest, WhereSinksNeedNoRightAReadTakesLogicalAddresses) {
  const uint64_t address = owner.Lam(owner.Memory(1), 1).first.value;
  owner.MustPost(pair, {Read({HostSge(Privileged(), address, 0)}, 0, kSomeToken)});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
}

class FewPostedPagesTest : public SessionPostTest {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.limits.session[Resource::kPostedPages] = 2;
    return options;
  }
  FewPostedPagesTest() : SessionPostTest(Options()) {}
};

TEST_F(FewPostedPagesTest, PagesAboveTheOwnersLimitAreRefusedUntilOthersAreDone) {
  const MemoryRegionId region = owner.FastRegion(4);
  const std::vector<uint64_t> pages = PagesOf(owner.Lam(owner.Memory(3), 3));
  watched_regions = {region};
  ExpectRefused(FastRegister(region, pages), ErrorReason::QUOTA_POSTED_PAGES, "");
  const std::vector<uint64_t> two(pages.begin(), pages.begin() + 2);
  owner.MustPost(pair, {FastRegister(region, two)});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
  ExpectRefused(Send({HostSge(Privileged(), pages[0], 1)}), ErrorReason::QUOTA_POSTED_PAGES, "");
  owner.MustPost(pair, {Invalidate(region)});
  owner.MustPost(pair, {Send({HostSge(Privileged(), pages[0], 1)})});
}

TEST_F(SessionPostTest, WhatACardRefusesEndsTheChainAndChangesNothing) {
  world.plan.FailEnqueue(MakeError(ErrorReason::DEVICE_FAILED), 1);
  const std::string held = world.Held();
  const PostOutcome outcome = owner.Post(pair, {Receive({}, 1)});
  EXPECT_EQ(outcome.posted, 0u);
  EXPECT_THAT(outcome.failure, FailsAt(ErrorReason::DEVICE_FAILED, "requests[0]"));
  EXPECT_EQ(world.Held(), held);
  owner.MustPost(pair, {Receive({}, 2)});
  peer.MustPost(peer_pair, {Send()});
  EXPECT_EQ(owner.Results().at(0).request_context, 2u);
}

TEST_F(SessionPostTest, ADeferredRequestBeforeARefusedOneIsExecuted) {
  const PostOutcome outcome = owner.Post(pair, {Write({}, 0, kSomeToken, kOpFlagDefer), Send(Sges(3))});
  EXPECT_EQ(outcome.posted, 1u);
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
}

}  // namespace
}  // namespace rnicd::core
