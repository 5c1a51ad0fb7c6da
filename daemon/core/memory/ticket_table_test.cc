#include "daemon/core/memory/ticket_table.h"

#include <set>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr std::chrono::milliseconds kLifetime{1000};

class TicketTableTest : public ::testing::Test {
 protected:
  FdTicket Issue(uint64_t process = 10) {
    return table_.Issue(
        {.object = MemoryObjectId{99}, .direction = FdDirection::kToDaemon, .process = {.high = 0, .low = process}});
  }
  absl::Status Redeem(const FdTicket& ticket, const ProcessKey& process = {.high = 0, .low = 10}) {
    return table_.Redeem(ticket, process);
  }

  ManualClock clock_;
  KernelRandom random_;
  TicketTable table_{random_, clock_, kLifetime};
};

TEST_F(TicketTableTest, ATicketWorksOnce) {
  const FdTicket ticket = Issue();
  EXPECT_TRUE(Redeem(ticket).ok());
  EXPECT_THAT(Redeem(ticket), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(TicketTableTest, FindingATicketDoesNotUseItUp) {
  const FdTicket ticket = Issue();
  for (int time = 0; time < 2; ++time) {
    const auto entry = table_.Find(ticket, {.high = 0, .low = 10});
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ(std::get<MemoryObjectId>(entry->object), MemoryObjectId{99});
    EXPECT_EQ(entry->direction, FdDirection::kToDaemon);
  }
  EXPECT_TRUE(Redeem(ticket).ok());
}

TEST_F(TicketTableTest, AnotherProcessIsRefusedAndTheOwnersTicketStays) {
  const FdTicket ticket = Issue();
  for (const ProcessKey& other : {ProcessKey{.high = 0, .low = 11}, ProcessKey{.high = 1, .low = 10}}) {
    EXPECT_THAT(table_.Find(ticket, other).status(), FailsWith(ErrorReason::TICKET_UNKNOWN));
    EXPECT_THAT(Redeem(ticket, other), FailsWith(ErrorReason::TICKET_UNKNOWN));
  }
  EXPECT_TRUE(Redeem(ticket).ok());
}

TEST_F(TicketTableTest, ExpiresAtTheEndOfItsLifetimeAndNotBefore) {
  const FdTicket early = Issue();
  const FdTicket late = Issue();
  clock_.Advance(kLifetime - std::chrono::milliseconds(1));
  EXPECT_TRUE(Redeem(early).ok());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_THAT(Redeem(late), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_EQ(table_.size(), 0u) << "an expired ticket takes no room";
}

TEST_F(TicketTableTest, EachExpiresInItsTurnWhateverWasUsedBetween) {
  const FdTicket first = Issue();
  clock_.Advance(kLifetime / 4);
  const FdTicket used = Issue();
  clock_.Advance(kLifetime / 4);
  const FdTicket last = Issue();
  EXPECT_TRUE(Redeem(used).ok());
  clock_.Advance(kLifetime / 2);
  EXPECT_THAT(Redeem(first), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_TRUE(Redeem(last).ok());
}

TEST_F(TicketTableTest, AnOwnedTicketIsRevokedWithItsOwnerAndNoOther) {
  const FdTicket kept = Issue();
  const FdTicket owned = Issue();
  {
    OwnedTicket first(table_, owned);
    const OwnedTicket second(std::move(first));
    EXPECT_EQ(table_.size(), 2u);
  }
  EXPECT_THAT(Redeem(owned), FailsWith(ErrorReason::TICKET_UNKNOWN));
  EXPECT_TRUE(Redeem(kept).ok());
}

TEST_F(TicketTableTest, TicketsDifferAndAGuessIsRefused) {
  std::set<FdTicket> seen;
  for (int index = 0; index < 1000; ++index) {
    EXPECT_TRUE(seen.insert(Issue()).second);
  }
  EXPECT_EQ(table_.size(), 1000u);
  EXPECT_THAT(Redeem(FdTicket{}), FailsWith(ErrorReason::TICKET_UNKNOWN));
}

}  // namespace
}  // namespace rnicd::core
