#include "daemon/core/ticket_table.h"

#include <set>

#include "daemon/core/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr std::chrono::milliseconds kLifetime{1000};

class TicketTableTest : public ::testing::Test {
 protected:
  static TicketTable::Entry EntryOf(uint64_t session, uint64_t process) {
    TicketTable::Entry entry;
    entry.session_id = SessionId{session};
    entry.memory = MemoryObjectId{99};
    entry.direction = FdDirection::kToDaemon;
    entry.process = {.high = 0, .low = process};
    return entry;
  }

  ManualClock clock_;
  KernelRandom random_;
  TicketTable table_{random_, clock_, kLifetime};
};

TEST_F(TicketTableTest, ATicketWorksOnce) {
  const FdTicket ticket = table_.Issue(EntryOf(1, 10));
  const auto entry = table_.Redeem(ticket, {.high = 0, .low = 10});
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->memory, MemoryObjectId{99});
  EXPECT_EQ(entry->direction, FdDirection::kToDaemon);
  EXPECT_THAT(table_.Redeem(ticket, {.high = 0, .low = 10}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

TEST_F(TicketTableTest, AnotherProcessIsRefusedAndTheOwnersTicketStays) {
  const FdTicket ticket = table_.Issue(EntryOf(1, 10));
  EXPECT_THAT(table_.Redeem(ticket, {.high = 0, .low = 11}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_THAT(table_.Redeem(ticket, {.high = 1, .low = 10}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_TRUE(table_.Redeem(ticket, {.high = 0, .low = 10}).ok());
}

TEST_F(TicketTableTest, ExpiresAtTheEndOfItsLifetimeAndNotBefore) {
  const FdTicket early = table_.Issue(EntryOf(1, 10));
  const FdTicket late = table_.Issue(EntryOf(1, 10));
  clock_.Advance(kLifetime - std::chrono::milliseconds(1));
  EXPECT_TRUE(table_.Redeem(early, {.high = 0, .low = 10}).ok());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_THAT(table_.Redeem(late, {.high = 0, .low = 10}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_EQ(table_.size(), 0u) << "an expired ticket takes no room";
}

TEST_F(TicketTableTest, ASessionsTicketsGoTogetherAndOthersStay) {
  const FdTicket gone = table_.Issue(EntryOf(1, 10));
  const FdTicket kept = table_.Issue(EntryOf(2, 10));
  table_.RevokeFor(SessionId{1});
  EXPECT_THAT(table_.Redeem(gone, {.high = 0, .low = 10}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_TRUE(table_.Redeem(kept, {.high = 0, .low = 10}).ok());
}

TEST_F(TicketTableTest, TicketsDifferAndAGuessIsRefused) {
  std::set<FdTicket> seen;
  for (int index = 0; index < 1000; ++index) {
    EXPECT_TRUE(seen.insert(table_.Issue(EntryOf(1, 10))).second);
  }
  EXPECT_EQ(table_.size(), 1000u);
  EXPECT_THAT(table_.Redeem(FdTicket{}, {.high = 0, .low = 10}).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

}  // namespace
}  // namespace rnicd::core
