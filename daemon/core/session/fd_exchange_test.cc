#include "daemon/core/session/fd_exchange.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

UniqueFd OnePageFile() { return MemoryFile(kPage); }

class ExchangeFdTest : public ::testing::Test {
 protected:
  absl::StatusOr<UniqueFd> Exchange(const FdTicket& ticket, UniqueFd file = UniqueFd(), uint64_t process = 1) {
    return ExchangeFd(world_.node, CallerNumbered(process), ticket, std::move(file));
  }
  MemoryTicket Import(uint64_t size = kPage) {
    auto ticket = owner_.session->Begin()->memory().Import(size);
    EXPECT_TRUE(ticket.ok());
    return *ticket;
  }
  // OBJECT_NOT_FOUND once the object was released.
  absl::Status Known(MemoryObjectId id) { return owner_.session->Begin()->memory().Find(id).status(); }

  World world_;
  Owner owner_{world_};
};

TEST_F(ExchangeFdTest, AFetchAnswersTheFileOnce) {
  const auto allocated = owner_.TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok());
  const auto file = Exchange(allocated->ticket);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->valid());
  EXPECT_THAT(Exchange(allocated->ticket).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

TEST_F(ExchangeFdTest, AnImportAttachesTheFileAndAnswersNone) {
  const MemoryTicket import = Import();
  const auto answer = Exchange(import.ticket, OnePageFile());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->valid());
  EXPECT_TRUE((*owner_.session->Begin()->memory().Find(import.memory))->Seal().ok());
}

TEST_F(ExchangeFdTest, AnotherProcessIsRefusedAndItsFileClosed) {
  const MemoryTicket import = Import();
  UniqueFd file = OnePageFile();
  const int number = file.get();
  EXPECT_THAT(Exchange(import.ticket, std::move(file), 2).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_FALSE(IsOpen(number));
  EXPECT_TRUE(Exchange(import.ticket, OnePageFile()).ok()) << "the owner's ticket still works";
}

TEST_F(ExchangeFdTest, ADescriptorTooManyOrTooFewIsRefusedAndTheTicketStays) {
  const auto allocated = owner_.TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok());
  EXPECT_THAT(Exchange(allocated->ticket, OnePageFile()).status(), FailsAt(ErrorReason::FD_COUNT_WRONG, "fd_count"));
  EXPECT_TRUE(Exchange(allocated->ticket).ok());
  const MemoryTicket import = Import();
  EXPECT_THAT(Exchange(import.ticket).status(), FailsAt(ErrorReason::FD_COUNT_WRONG, "fd_count"));
  EXPECT_TRUE(Exchange(import.ticket, OnePageFile()).ok());
}

TEST_F(ExchangeFdTest, ARefusedFileTakesItsMemoryObjectBack) {
  const std::string before = world_.Held();
  const MemoryTicket import = Import(2 * kPage);
  EXPECT_THAT(Exchange(import.ticket, OnePageFile()).status(), FailsWith(ErrorReason::MEMORY_TOO_SHORT));
  EXPECT_THAT(Known(import.memory), FailsWith(ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(world_.Held(), before);
}

TEST_F(ExchangeFdTest, AnExpiredTicketIsRefused) {
  const MemoryTicket import = Import();
  world_.clock.Advance(std::chrono::milliseconds(30000));
  EXPECT_THAT(Exchange(import.ticket, OnePageFile()).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

TEST_F(ExchangeFdTest, ATicketIsRevokedWithItsMemoryObject) {
  const MemoryTicket import = Import();
  ASSERT_TRUE(owner_.session->Begin()->memory().Release(import.memory, nullptr).succeeded());
  EXPECT_THAT(Exchange(import.ticket, OnePageFile()).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  const auto allocated = owner_.TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok());
  owner_.session->Begin()->memory().Drop(allocated->memory);
  EXPECT_THAT(Exchange(allocated->ticket).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

// The bound of the table: an owner can have as many tickets as it may have memory objects.
TEST(TicketLimit, NoSessionHasMoreTicketsThanItsLimitOfMemoryObjects) {
  WorldOptions options;
  options.limits.session[Resource::kMemoryObjects] = 3;
  World world(options);
  Owner owner(world);
  MemoryObjectId last;
  for (int round = 0; round < 10; ++round) {
    absl::StatusOr<MemoryTicket> import = owner.session->Begin()->memory().Import(kPage);
    while (import.ok()) {
      last = import->memory;
      import = owner.session->Begin()->memory().Import(kPage);
    }
    EXPECT_THAT(import.status(), FailsWith(ErrorReason::QUOTA_MEMORY_OBJECTS));
    EXPECT_EQ(ErrorInfoOf(import.status()).limit, 3u);
    EXPECT_EQ(ErrorInfoOf(import.status()).used, 3u);
    EXPECT_EQ(world.tickets.size(), 3u);
    ASSERT_TRUE(owner.session->Begin()->memory().Release(last, nullptr).succeeded());
  }
  world.End(owner.session);
  EXPECT_EQ(world.tickets.size(), 0u);
}

TEST_F(ExchangeFdTest, AnEndingSessionTakesNoFile) {
  const MemoryTicket import = Import();
  const auto guard = owner_.session->Begin();
  owner_.session->End(EndCause::kEvicted, [](const Reclaimed&) {});
  EXPECT_THAT(Exchange(import.ticket, OnePageFile()).status(), FailsWith(ErrorReason::SESSION_ENDING));
  world_.registry.End(owner_.session, EndCause::kEvicted, nullptr);
}

// The only decision about descriptors since the last call.
class FdDecisionTest : public ExchangeFdTest {
 protected:
  std::optional<RecordedDecision> Recorded() const {
    std::optional<RecordedDecision> recorded;
    for (const RecordedDecision& decision : world_.observer.counts().decisions) {
      if (decision.what == "fd") {
        EXPECT_FALSE(recorded.has_value()) << "more than one";
        recorded = decision;
      }
    }
    EXPECT_TRUE(recorded.has_value());
    return recorded;
  }
  static std::string ObjectOf(MemoryObjectId id) { return "memory_id=" + std::to_string(id.value); }
};

TEST_F(FdDecisionTest, AnExchangeIsReportedWithItsTenantSessionAndObject) {
  const MemoryTicket import = Import();
  ASSERT_TRUE(Exchange(import.ticket, OnePageFile()).ok());
  const RecordedDecision recorded = Recorded().value_or(RecordedDecision{});
  EXPECT_EQ(recorded.process, CallerNumbered(1).process);
  EXPECT_EQ(recorded.tenant, "uid/uid=1000");
  EXPECT_EQ(recorded.session, owner_.session->id());
  EXPECT_EQ(recorded.object, ObjectOf(import.memory));
  EXPECT_EQ(recorded.refused, std::nullopt);
  EXPECT_EQ(recorded.note, "to_daemon");
}

TEST_F(FdDecisionTest, AFetchSaysWhichWayTheDescriptorWent) {
  const auto allocated = owner_.TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok() && Exchange(allocated->ticket).ok());
  EXPECT_EQ(Recorded()->note, "to_client");
}

TEST_F(FdDecisionTest, ARefusedFileIsReportedWithItsReason) {
  const MemoryTicket import = Import(2 * kPage);
  ASSERT_FALSE(Exchange(import.ticket, OnePageFile()).ok());
  EXPECT_EQ(Recorded()->refused, ErrorReason::MEMORY_TOO_SHORT);
  EXPECT_EQ(Recorded()->object, ObjectOf(import.memory));
}

TEST_F(FdDecisionTest, AStrangersTicketNamesNeitherTheSessionNorTheObject) {
  const MemoryTicket import = Import();
  ASSERT_FALSE(Exchange(import.ticket, OnePageFile(), 2).ok());
  const RecordedDecision recorded = Recorded().value_or(RecordedDecision{});
  EXPECT_EQ(recorded.process, CallerNumbered(2).process);
  EXPECT_EQ(recorded.refused, ErrorReason::TICKET_UNKNOWN);
  EXPECT_EQ(recorded.tenant + recorded.object + recorded.note, "");
  EXPECT_EQ(recorded.session, SessionId{});
}

}  // namespace
}  // namespace rnicd::core
