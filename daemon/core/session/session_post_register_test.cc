// Checks at posting of the requests that issue or revoke tokens: FastRegister, Invalidate, Bind.

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kFastPages = 4;

class SessionPostRegisterTest : public PostTest {
 protected:
  SessionPostRegisterTest() : pages_(PagesOf(lam_)) {
    watched_regions = {fast_};
    watched_windows = {window_};
  }

  // A FastRegister of all pages; each test makes one part of it invalid.
  WorkRequest::FastRegister Sound() const {
    return {.region = fast_, .pages = pages_, .length = kFastPages * kPage, .base_address = {kRegionBase}};
  }
  void ExpectFastRefused(const WorkRequest::FastRegister& operation, ErrorReason reason, const std::string& member) {
    ExpectRefused({.operation = operation}, reason, "fast_register." + member);
  }
  WorkRequest::Bind SoundBind() const {
    return {.region = region_, .window = window_, .address = {kRegionBase}, .length = kPage};
  }
  void ExpectBindRefused(const WorkRequest::Bind& operation, ErrorReason reason, const std::string& member) {
    ExpectRefused({.operation = operation}, reason, "bind." + member);
  }
  // A registered region with the given flags.
  MemoryRegionId RegionWith(uint32_t flags) {
    const MemoryRegionId region = owner.Region(owner.domain);
    const MdlEntry entry{.memory_id = owner.Memory(1), .byte_count = kPage, .virtual_address = {kRegionBase}};
    EXPECT_TRUE(owner.session->Begin()
                    ->regions()
                    .Register({.region = region, .chain = {&entry, 1}, .length = kPage, .flags = flags}, {}, nullptr)
                    .ok());
    return region;
  }
  MemoryRegionId FastRegionIn(ProtectionDomainId domain) {
    const MemoryRegionId region = *owner.session->Begin()->regions().Create(domain, true);
    EXPECT_TRUE(owner.Initialize(region, kFastPages, true).ok());
    return region;
  }

  const BuiltLam lam_ = owner.Lam(owner.Memory(kFastPages), kFastPages);
  const MemoryRegionId fast_ = owner.FastRegion(kFastPages);
  // Region of two pages, with remote write.
  const MemoryRegionId region_ = owner.RegisteredRegion(2);
  const MemoryWindowId window_ = owner.Window();
  const ProtectionDomainId other_domain_ = owner.Domain(owner.adapter);
  std::vector<uint64_t> pages_;
};

TEST_F(SessionPostRegisterTest, FlagsThatAnOperationDoesNotTakeAreRefused) {
  for (const uint32_t flag : {kOpFlagSolicit, kOpFlagInline, kOpFlagReadLocalInvalidate, 0x400u}) {
    ExpectRefused(FastRegister(fast_, pages_, flag), ErrorReason::FLAGS_UNKNOWN, "flags");
    ExpectRefused(Bind(region_, window_, kPage, flag), ErrorReason::FLAGS_UNKNOWN, "flags");
    WorkRequest invalidate = Invalidate(fast_);
    invalidate.flags = flag;
    ExpectRefused(invalidate, ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  for (const uint32_t flag : {kOpFlagRemoteRead, kOpFlagLocalWrite, kOpFlagRemoteWrite, kOpFlagReadSink}) {
    WorkRequest invalidate = Invalidate(fast_);
    invalidate.flags = flag;
    ExpectRefused(invalidate, ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  ExpectRefused(Bind(region_, window_, kPage, kOpFlagReadSink), ErrorReason::FLAGS_UNKNOWN, "flags");
}

TEST_F(SessionPostRegisterTest, HalfOfRemoteWriteIsRefused) {
  for (const uint32_t flags : {kOpFlagRemoteWriteBit, kOpFlagRemoteWriteBit | kOpFlagRemoteRead}) {
    ExpectRefused(FastRegister(fast_, pages_, flags), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
    ExpectRefused(Bind(region_, window_, kPage, flags), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
  }
}

TEST_F(SessionPostRegisterTest, LocalWriteAloneIsAFlagOfFastRegisterAndNotOfBind) {
  for (const uint32_t flags : {kOpFlagLocalWrite, kOpFlagLocalWrite | kOpFlagRemoteRead}) {
    ExpectRefused(Bind(region_, window_, kPage, flags), ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  owner.MustPost(pair, {FastRegister(fast_, pages_, kOpFlagLocalWrite)});
}

TEST_F(SessionPostRegisterTest, FlagsThatAnOperationTakesAreNotRefused) {
  owner.MustPost(pair, {FastRegister(fast_, pages_,
                                     kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite | kOpFlagReadSink),
                        Bind(region_, window_, kPage, kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite)});
  WorkRequest invalidate = Invalidate(fast_);
  invalidate.flags = kOpFlagReadFence | kOpFlagDefer;
  owner.MustPost(pair, {invalidate});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess}) << "the others were silent";
}

TEST_F(SessionPostRegisterTest, FastRegisterNeedsARegionOfTheFastKindThatIsReady) {
  WorkRequest::FastRegister operation = Sound();
  operation.region = {};
  ExpectFastRefused(operation, ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  operation.region = peer.FastRegion();
  ExpectFastRefused(operation, ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  operation.region = region_;
  ExpectFastRefused(operation, ErrorReason::REGION_WRONG_KIND, "mr_id");
  operation.region = owner.NewFastRegion();
  ExpectFastRefused(operation, ErrorReason::REGION_NOT_INITIALIZED, "mr_id");
  operation.region = FastRegionIn(other_domain_);
  ExpectFastRefused(operation, ErrorReason::DOMAIN_MISMATCH, "mr_id");
}

TEST_F(SessionPostRegisterTest, FastRegisterTakesOneToAsManyPagesAsTheRegionHas) {
  WorkRequest::FastRegister operation = Sound();
  operation.pages = {};
  ExpectFastRefused(operation, ErrorReason::FIELD_OUT_OF_RANGE, "adapter_page_array");
  pages_.push_back(pages_[0]);
  operation.pages = pages_;
  ExpectFastRefused(operation, ErrorReason::PAGE_COUNT_ABOVE_REGION, "adapter_page_array");
}

TEST_F(SessionPostRegisterTest, FastRegisterChecksOffsetAndLengthAgainstThePages) {
  WorkRequest::FastRegister operation = Sound();
  operation.fbo = kPage;
  ExpectFastRefused(operation, ErrorReason::FIELD_OUT_OF_RANGE, "fbo");
  operation.fbo = UINT32_MAX;
  ExpectFastRefused(operation, ErrorReason::FIELD_OUT_OF_RANGE, "fbo");
  operation = Sound();
  operation.length = 0;
  ExpectFastRefused(operation, ErrorReason::LENGTH_ZERO, "length");
  for (const uint64_t above : {kFastPages * kPage + 1, UINT64_MAX}) {
    operation.length = above;
    ExpectFastRefused(operation, ErrorReason::LENGTH_ABOVE_PAGES, "length");
  }
  operation = Sound();
  operation.fbo = 1;
  operation.base_address.value += 1;
  ExpectFastRefused(operation, ErrorReason::LENGTH_ABOVE_PAGES, "length");
  operation.length -= 1;
  owner.MustPost(pair, {{.operation = operation}});
}

TEST_F(SessionPostRegisterTest, FastRegisterNeedsABaseThatFitsTheOffset) {
  WorkRequest::FastRegister operation = Sound();
  operation.base_address = {kRegionBase + 1};
  ExpectFastRefused(operation, ErrorReason::BASE_NOT_CONGRUENT, "base_virtual_address");
  operation.fbo = 2;
  operation.length = 1;
  ExpectFastRefused(operation, ErrorReason::BASE_NOT_CONGRUENT, "base_virtual_address");
  operation.base_address = {};
  ExpectFastRefused(operation, ErrorReason::BASE_NOT_CONGRUENT, "base_virtual_address");
}

TEST_F(SessionPostRegisterTest, FastRegisterMayNotPassTheEndOfTheAddresses) {
  WorkRequest::FastRegister operation = Sound();
  operation.base_address = {UINT64_MAX - 3};
  operation.fbo = kPage - 4;
  operation.length = 8;
  ExpectFastRefused(operation, ErrorReason::ADDRESS_RANGE_OVERFLOW, "base_virtual_address");
  operation = Sound();
  operation.base_address = {UINT64_MAX - kPage + 1};
  operation.length = kPage + 1;
  ExpectFastRefused(operation, ErrorReason::ADDRESS_RANGE_OVERFLOW, "base_virtual_address");
  operation.length = kPage;
  owner.MustPost(pair, {{.operation = operation}});
}

TEST_F(SessionPostRegisterTest, FastRegisterAtBaseZeroIsSound) {
  WorkRequest::FastRegister operation = Sound();
  operation.base_address = {};
  owner.MustPost(pair, {{.operation = operation}});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
}

TEST_F(SessionPostRegisterTest, FastRegisterTakesOnlyPagesOfItsOwnSessionAndAdapter) {
  WorkRequest::FastRegister operation = Sound();
  const std::vector<uint64_t> sound = pages_;
  const auto spoil = [&](uint64_t address, ErrorReason reason) {
    pages_ = sound;
    pages_[2] = address;
    operation.pages = pages_;
    ExpectFastRefused(operation, reason, "adapter_page_array[2]");
  };
  spoil(sound[2] + 1, ErrorReason::LOGICAL_ADDRESS_UNALIGNED);
  spoil(sound[2] - 1, ErrorReason::LOGICAL_ADDRESS_UNALIGNED);
  spoil(sound[3] + kPage, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  spoil(sound[0] - kPage, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  spoil(UINT64_MAX - kPage + 1, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  spoil(sound[0] ^ (uint64_t{1} << 63), ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  spoil(0, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  spoil(peer.Lam(peer.Memory(1), 1).first.value, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  const MdlEntry entry{.memory_id = owner.Memory(1), .byte_count = kPage, .virtual_address = {kRegionBase}};
  const auto elsewhere =
      owner.session->Begin()->mappings().Build({.adapter = owner.Adapter(), .chain = {&entry, 1}, .length = kPage});
  ASSERT_TRUE(elsewhere.ok());
  spoil(elsewhere->first.value, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
  const BuiltLam released = owner.Lam(owner.Memory(1), 1);
  ASSERT_TRUE(owner.session->Begin()->mappings().Release(released.id).ok());
  spoil(released.first.value, ErrorReason::LOGICAL_ADDRESS_UNKNOWN);
}

TEST_F(SessionPostRegisterTest, AMadeUpPageIsNamedWhereverItStands) {
  WorkRequest::FastRegister operation = Sound();
  for (size_t index = 0; index < kFastPages; ++index) {
    std::vector<uint64_t> forged = pages_;
    forged[index] = pages_.back() + kPage;
    operation.pages = forged;
    ExpectFastRefused(operation, ErrorReason::LOGICAL_ADDRESS_UNKNOWN,
                      "adapter_page_array[" + std::to_string(index) + "]");
  }
}

TEST_F(SessionPostRegisterTest, RemoteRightsNeedARegionThatWasMadeReadyForThem) {
  const MemoryRegionId local = owner.FastRegion(kFastPages, /*remote_access=*/false);
  watched_regions.push_back(local);
  for (const uint32_t flags : {kOpFlagRemoteRead, kOpFlagRemoteWrite, kOpFlagRemoteRead | kOpFlagRemoteWrite}) {
    ExpectRefused(FastRegister(local, pages_, flags), ErrorReason::REGION_NO_REMOTE_ACCESS, "flags");
  }
  owner.MustPost(pair, {FastRegister(local, pages_, kOpFlagLocalWrite | kOpFlagReadSink)});
}

TEST_F(SessionPostRegisterTest, InvalidateNeedsATarget) {
  ExpectRefused({.operation = WorkRequest::Invalidate{}}, ErrorReason::FIELD_OUT_OF_RANGE, "invalidate.target");
}

TEST_F(SessionPostRegisterTest, InvalidateNeedsAReadyFastRegionOrAWindowOfTheSameDomain) {
  ExpectRefused(Invalidate(MemoryRegionId{}), ErrorReason::OBJECT_NOT_FOUND, "invalidate.mr_id");
  ExpectRefused(Invalidate(region_), ErrorReason::REGION_WRONG_KIND, "invalidate.mr_id");
  ExpectRefused(Invalidate(owner.NewFastRegion()), ErrorReason::REGION_NOT_INITIALIZED, "invalidate.mr_id");
  ExpectRefused(Invalidate(FastRegionIn(other_domain_)), ErrorReason::DOMAIN_MISMATCH, "invalidate.mr_id");
  ExpectRefused(Invalidate(MemoryWindowId{}), ErrorReason::OBJECT_NOT_FOUND, "invalidate.mw_id");
  ExpectRefused(Invalidate(peer.Window()), ErrorReason::OBJECT_NOT_FOUND, "invalidate.mw_id");
  ExpectRefused(Invalidate(*owner.session->Begin()->windows().Create(other_domain_)), ErrorReason::DOMAIN_MISMATCH,
                "invalidate.mw_id");
}

TEST_F(SessionPostRegisterTest, ATargetThatIsNotRegisteredOrBoundIsCheckedWhenTheInvalidateIsExecuted) {
  owner.MustPost(pair, {Invalidate(window_), Invalidate(fast_)});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kInvalidDeviceRequest, NtStatus::kCancelled}));
}

TEST_F(SessionPostRegisterTest, BindNeedsARegisteredRegionAndAWindowOfTheSameDomain) {
  WorkRequest::Bind operation = SoundBind();
  operation.region = {};
  ExpectBindRefused(operation, ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  operation.region = fast_;
  ExpectBindRefused(operation, ErrorReason::REGION_WRONG_KIND, "mr_id");
  operation.region = owner.Region(owner.domain);
  ExpectBindRefused(operation, ErrorReason::REGION_NOT_REGISTERED, "mr_id");
  operation.region = owner.Region(other_domain_);
  ExpectBindRefused(operation, ErrorReason::DOMAIN_MISMATCH, "mr_id");
  operation = SoundBind();
  operation.window = {};
  ExpectBindRefused(operation, ErrorReason::OBJECT_NOT_FOUND, "mw_id");
  operation.window = *owner.session->Begin()->windows().Create(other_domain_);
  ExpectBindRefused(operation, ErrorReason::DOMAIN_MISMATCH, "mw_id");
}

TEST_F(SessionPostRegisterTest, AWindowLiesInsideItsRegion) {
  WorkRequest::Bind operation = SoundBind();
  operation.length = 0;
  ExpectBindRefused(operation, ErrorReason::LENGTH_ZERO, "length");
  operation.length = (uint64_t{1} << 40) + 1;
  ExpectBindRefused(operation, ErrorReason::ABOVE_ADAPTER_LIMIT, "length");
  const std::pair<uint64_t, uint64_t> outside[] = {{kRegionBase, 2 * kPage + 1},
                                                   {kRegionBase + 2 * kPage, 1},
                                                   {kRegionBase + 2 * kPage - 1, 2},
                                                   {kRegionBase - 1, 1},
                                                   {0, kPage},
                                                   {UINT64_MAX, 1}};
  for (const auto& [address, length] : outside) {
    operation.address = {address};
    operation.length = length;
    ExpectBindRefused(operation, ErrorReason::WINDOW_OUTSIDE_REGION, "virtual_address");
  }
  operation.address = {kRegionBase + 2 * kPage - 1};
  operation.length = 1;
  owner.MustPost(pair, {{.operation = operation}});
}

TEST_F(SessionPostRegisterTest, AWindowForRemoteWritesNeedsTheRegionsLocalWrite) {
  const MemoryRegionId read_only = RegionWith(kMrFlagRemoteRead);
  for (const uint32_t flags : {kOpFlagRemoteWrite, kOpFlagRemoteWrite | kOpFlagRemoteRead}) {
    ExpectRefused(Bind(read_only, window_, kPage, flags), ErrorReason::REGION_RIGHTS_INSUFFICIENT, "flags");
  }
  owner.MustPost(pair, {Bind(read_only, window_, kPage, kOpFlagRemoteRead),
                        Bind(RegionWith(kMrFlagLocalWrite), owner.Window(), kPage, kOpFlagRemoteWrite)});
  EXPECT_EQ(owner.Statuses(), (std::vector<NtStatus>{NtStatus::kSuccess, NtStatus::kSuccess}))
      << "a window may grant peers what the region does not";
}

TEST_F(SessionPostRegisterTest, AWindowWithoutRightsIsSound) {
  owner.MustPost(pair, {Bind(region_, window_)});
  EXPECT_EQ(owner.Statuses(), std::vector<NtStatus>{NtStatus::kSuccess});
}

TEST_F(SessionPostRegisterTest, EachFastRegisterAndBindIssuesATokenOfItsOwn) {
  const RemoteToken before = *owner.session->Begin()->regions().GetRemoteToken(fast_);
  const uint64_t counted = world.observer.counts().remote_tokens;
  const PostOutcome outcome = owner.Post(pair, {Receive(), FastRegister(fast_, pages_), Invalidate(fast_),
                                                Bind(region_, window_), FastRegister(fast_, pages_)});
  ASSERT_TRUE(outcome.failure.ok()) << outcome.failure;
  ASSERT_EQ(outcome.issued_tokens.size(), 3u);
  EXPECT_EQ(outcome.issued_tokens[0].request_index, 1u);
  EXPECT_EQ(outcome.issued_tokens[1].request_index, 3u);
  EXPECT_EQ(outcome.issued_tokens[2].request_index, 4u);
  EXPECT_NE(outcome.issued_tokens[0].remote_token, before);
  EXPECT_NE(outcome.issued_tokens[0].remote_token, outcome.issued_tokens[2].remote_token);
  EXPECT_EQ(*owner.session->Begin()->regions().GetRemoteToken(fast_), outcome.issued_tokens[2].remote_token);
  EXPECT_EQ(*owner.session->Begin()->windows().GetRemoteToken(window_), outcome.issued_tokens[1].remote_token);
  EXPECT_EQ(world.observer.counts().remote_tokens, counted + 3 + 1) << "three were issued and one was asked for";
}

TEST_F(SessionPostRegisterTest, ARequestTheCardRefusesIssuesNoTokenAndKeepsNothing) {
  const auto tokens = Tokens();
  const std::string held = world.Held();
  for (const WorkRequest& request : {FastRegister(fast_, pages_), Bind(region_, window_)}) {
    world.plan.FailEnqueue(MakeError(ErrorReason::DEVICE_FAILED), 1);
    EXPECT_THAT(owner.Post(pair, {request}).failure, FailsAt(ErrorReason::DEVICE_FAILED, "requests[0]"));
  }
  EXPECT_EQ(Tokens(), tokens);
  EXPECT_EQ(world.Held(), held);
  EXPECT_THAT(owner.session->Begin()->windows().GetRemoteToken(window_).status(),
              FailsAt(ErrorReason::WINDOW_NOT_BOUND, "mw_id"));
  EXPECT_TRUE(owner.session->Begin()->regions().Close(region_, {}, nullptr).succeeded())
      << "a refused Bind keeps no region";
}

}  // namespace
}  // namespace rnicd::core
