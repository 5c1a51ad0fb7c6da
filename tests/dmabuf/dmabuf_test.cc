// What a registered dma-buf costs its session, and how it ends.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/core/session/core_fixture_test.h"
#include "provider/verbs/fake/verbs_dmabuf_fake.h"
#include "provider/verbs/verbs_provider.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kSize = 8 * kPage;
constexpr uint64_t kBase = 0x7f0000000000;

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class DmabufOnACard : public ::testing::Test {
 protected:
  explicit DmabufOnACard(const Limits& limits = {})
      : wired_({.os = os_,
                .clock = clock_,
                .random = random_,
                .provider = *provider_,
                .observer = observer_,
                .workers = *workers_,
                .reapers = *reapers_,
                .limits = {},
                .policy = OneTenantForEachUid(limits)}),
        session_(*wired_.registry.Open(CallerNumbered(1), "test")),
        owner_(session_) {
    EXPECT_EQ(ftruncate(buffer_.get(), kSize), 0);
    os_.ReportAsDmabuf(buffer_.get());
  }
  ~DmabufOnACard() override {
    wired_.registry.Drain(EndCause::kDaemonStopping);
    EXPECT_TRUE(wired_.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
    workers_.reset();
    reapers_.reset();
    EXPECT_EQ(HeldBy(*wired_.ledger), "");
    EXPECT_THAT(card_.violations(), ::testing::IsEmpty());
  }

  static std::unique_ptr<provider::VerbsProvider> ProviderOn(provider::FakeVerbs& card, RandomSource& random) {
    card.set_automatic(true);
    provider::VerbsOptions options;
    options.fast_engine = provider::FastEngine::kRegistration;
    auto provider = provider::VerbsProvider::Create(options, random, card, [](const provider::AdapterEvent&) {});
    EXPECT_TRUE(provider.ok()) << provider.status();
    return *std::move(provider);
  }
  ProtectionDomainId Domain() {
    const absl::StatusOr<AdapterId> adapter = session_->Begin()->adapters().Open("fake0", {1, 2});
    EXPECT_TRUE(adapter.ok()) << adapter.status();
    return owner_.Domain(*adapter);
  }
  MemoryObjectId Imported() {
    const absl::StatusOr<MemoryTicket> ticket = session_->Begin()->memory().Import(kSize);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    const auto memory = *session_->Begin()->memory().Find(ticket->memory);
    EXPECT_TRUE(memory->Attach(UniqueFd(dup(buffer_.get()))).ok());
    EXPECT_TRUE(memory->Seal().ok());
    return ticket->memory;
  }
  absl::StatusOr<Registration> Register(MemoryRegionId region, MemoryObjectId memory, uint64_t offset, uint64_t bytes) {
    const MdlEntry entry{
        .memory_id = memory, .byte_offset = offset, .byte_count = bytes, .virtual_address = {kBase + offset}};
    auto answer = std::make_shared<Awaited<absl::StatusOr<Registration>>>();
    const auto begun = session_->Begin()->regions().Register(
        {.region = region, .chain = {&entry, 1}, .length = bytes, .flags = kMrFlagRemoteWrite}, {},
        [answer](const absl::StatusOr<Registration>& outcome) { answer->Set(outcome); });
    return begun.pending() ? *answer->Get() : begun.outcome();
  }
  void ReleaseMemory(MemoryObjectId memory) {
    EXPECT_TRUE(Owner::Await([&](const Done<>& done) -> MaybePending<> {
                  RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session_->Begin());
                  return held.memory().Release(memory, done);
                }).ok());
  }
  void EndSession(EndCause cause) {
    auto ended = std::make_shared<Awaited<Reclaimed>>();
    wired_.registry.End(session_, cause, [ended](const Reclaimed& reclaimed) { ended->Set(reclaimed); });
    EXPECT_TRUE(ended->Get().has_value());
  }
  uint64_t Used(Resource resource) const { return wired_.ledger->used(resource); }

  const UniqueFd buffer_{memfd_create("dmabuf", MFD_CLOEXEC)};
  FaultyOs os_{SystemOs()};
  ManualClock clock_;
  KernelRandom random_;
  provider::FakeDmabufVerbs card_;
  std::unique_ptr<provider::VerbsProvider> provider_ = ProviderOn(card_, random_);
  RecordingObserver observer_;
  std::unique_ptr<WorkerPool> workers_ = std::make_unique<WorkerPool>(2);
  std::unique_ptr<WorkerPool> reapers_ = std::make_unique<WorkerPool>(1);
  WiredNode wired_;
  std::shared_ptr<Session> session_;
  Owner owner_;
};

TEST_F(DmabufOnACard, ARegistrationReachesTheCardAsItIsDescribed) {
  const MemoryObjectId memory = Imported();
  const auto registration = Register(owner_.Region(Domain()), memory, 2 * kPage + 16, kPage);
  ASSERT_TRUE(registration.ok()) << registration.status();
  const provider::FakeRegion made = card_.regions().back();
  struct stat file = {};
  ASSERT_EQ(fstat(buffer_.get(), &file), 0);
  EXPECT_EQ(made.dmabuf_inode, file.st_ino);
  EXPECT_EQ(made.dmabuf_offset, 2 * kPage + 16);
  EXPECT_EQ(made.iova, kBase + 2 * kPage + 16);
  EXPECT_EQ(made.length, kPage);
  EXPECT_EQ(registration->base_address.value, made.iova);
  EXPECT_EQ(registration->remote_token.value, made.rkey);
  EXPECT_EQ(os_.live_mappings(), 0u) << "the daemon maps none of it";
}

TEST_F(DmabufOnACard, ItsPagesAreChargedOnceWhileAnyRegionHasThem) {
  const ProtectionDomainId domain = Domain();
  // Two imports of one dma-buf, which no seal forbids.
  const MemoryObjectId first = Imported();
  const MemoryObjectId second = Imported();
  EXPECT_EQ(Used(Resource::kMemoryBytes), 2 * kSize);
  const MemoryRegionId one = owner_.Region(domain);
  const MemoryRegionId other = owner_.Region(domain);
  ASSERT_TRUE(Register(one, first, 0, 4 * kPage).ok());
  ASSERT_TRUE(Register(other, second, 2 * kPage, 4 * kPage).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 6 * kPage);
  EXPECT_EQ(Used(Resource::kRegisteredBytes), 8 * kPage);
  ASSERT_TRUE(owner_.Deregister(one).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 4 * kPage);
  ASSERT_TRUE(owner_.Close(other).ok());
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  EXPECT_EQ(provider_->live_regions(), 0u);
  ReleaseMemory(first);
  ReleaseMemory(second);
  EXPECT_EQ(Used(Resource::kMemoryBytes), 0u);
}

TEST_F(DmabufOnACard, AProcessThatDiesLeavesNeitherRegistrationNorDescriptor) {
  const size_t descriptors = OpenDescriptors();
  const provider::FakeLive idle = card_.live();
  const MemoryObjectId memory = Imported();
  ASSERT_TRUE(Register(owner_.Region(Domain()), memory, 0, kSize).ok());
  EXPECT_GT(OpenDescriptors(), descriptors);
  EndSession(EndCause::kProcessExited);
  EXPECT_EQ(card_.live(), idle);
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(HeldBy(*wired_.ledger), "");
}

// The exporter may let a card wait that ends its access, too.
TEST_F(DmabufOnACard, ItsDeregistrationIsAWorkersHoweverShort) {
  const MemoryRegionId region = owner_.Region(Domain());
  ASSERT_TRUE(Register(region, Imported(), 0, kPage).ok());
  auto answer = std::make_shared<Awaited<absl::Status>>();
  const auto begun = session_->Begin()->regions().Deregister(
      region, {}, [answer](const absl::Status& status) { answer->Set(status); });
  EXPECT_TRUE(begun.pending());
  EXPECT_TRUE(answer->Get()->ok());
  EXPECT_EQ(provider_->live_regions(), 0u);
}

TEST_F(DmabufOnACard, ItIsNotReleasedUnderTheCard) {
  const MemoryObjectId memory = Imported();
  ASSERT_TRUE(Register(owner_.Region(Domain()), memory, 0, kPage).ok());
  const absl::Status refused = Owner::Await([&](const Done<>& done) -> MaybePending<> {
    RNICD_ASSIGN_OR_RETURN(const SessionGuard held, session_->Begin());
    return held.memory().Release(memory, done);
  });
  EXPECT_THAT(refused, FailsWith(ErrorReason::MEMORY_IN_USE));
}

// The exporter's errno, whatever it is, is no statement about the card.
TEST_F(DmabufOnACard, AnExporterThatRefusesTheCardLeavesNothing) {
  const MemoryObjectId memory = Imported();
  const MemoryRegionId region = owner_.Region(Domain());
  card_.FailNext("RegDmabufMr", EIO);
  EXPECT_THAT(Register(region, memory, 0, kPage).status(), FailsWith(ErrorReason::MEMORY_NOT_PINNABLE));
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  EXPECT_TRUE(Register(region, memory, 0, kPage).ok());
}

class DmabufAboveTheLimit : public DmabufOnACard {
 protected:
  DmabufAboveTheLimit() : DmabufOnACard(TwoPinnedPages()) {}
  static Limits TwoPinnedPages() {
    Limits limits;
    limits[Resource::kPinnedBytes] = 2 * kPage;
    return limits;
  }
};

TEST_F(DmabufAboveTheLimit, IsRefusedBeforeTheCardIsAsked) {
  const MemoryObjectId memory = Imported();
  const MemoryRegionId region = owner_.Region(Domain());
  EXPECT_THAT(Register(region, memory, 0, 3 * kPage).status(), FailsWith(ErrorReason::QUOTA_PINNED_BYTES));
  EXPECT_EQ(card_.calls("RegDmabufMr"), 0u);
  EXPECT_TRUE(Register(region, memory, 0, 2 * kPage).ok());
}

}  // namespace
}  // namespace rnicd::core
