#include <windows.h>
// Behind windows.h, whose types it uses.
#include <winternl.h>

#include <string>

#include "daemon/pipes/front_door_fixture.h"

namespace rnicd::pipes {
namespace {

using core::kPage;

constexpr ACCESS_MASK kMapAndQuery = SECTION_MAP_READ | SECTION_MAP_WRITE | SECTION_QUERY;

// A client with a session.
class SectionTest : public FrontDoorTest {
 protected:
  SectionTest() {
    Open();
    client_.emplace(names_.workloads);
    connection_ = ConnectTo(client_->Hello().port());
    auto opened = world_.registry.Open(CallerOf(1), "test");
    EXPECT_TRUE(opened.ok()) << opened.status();
    owner_.emplace(*opened);
  }
  ~SectionTest() override {
    door_->Stop();
    world_.End(owner_->session);
  }

  core::MemoryTicket Import() {
    auto ticket = owner_->session->Begin()->memory().Import(kPage);
    EXPECT_TRUE(ticket.ok());
    return *ticket;
  }
  static uint32_t ValueOf(const UniqueFd& handle) { return static_cast<uint32_t>(handle.get()); }
  static UniqueFd WithRights(const UniqueFd& section, ACCESS_MASK rights) {
    HANDLE duplicate = nullptr;
    EXPECT_NE(DuplicateHandle(GetCurrentProcess(), LongToHandle(section.get()), GetCurrentProcess(), &duplicate, rights,
                              FALSE, 0),
              0);
    return UniqueFd(HandleToLong(duplicate));
  }
  static ACCESS_MASK RightsOf(const UniqueFd& handle) {
    OBJECT_BASIC_INFORMATION facts = {};
    EXPECT_TRUE(
        NT_SUCCESS(NtQueryObject(LongToHandle(handle.get()), ObjectBasicInformation, &facts, sizeof(facts), nullptr)));
    return facts.GrantedAccess;
  }

  std::optional<PipeClient> client_;
  UniqueSocket connection_;
  std::optional<core::Owner> owner_;
};

TEST_F(SectionTest, ASectionOfTheClientIsAttachedAndTheClientMayCloseItsHandle) {
  const core::MemoryTicket import = Import();
  {
    const UniqueFd file = core::MemoryFile(kPage);
    const v1::PipeReply reply = client_->Give(import.ticket, ValueOf(file));
    EXPECT_FALSE(reply.has_error()) << reply.ShortDebugString();
    EXPECT_EQ(reply.handle(), 0u);
  }
  EXPECT_TRUE((*owner_->session->Begin()->memory().Find(import.memory))->Seal().ok());
}

TEST_F(SectionTest, TheDaemonsSectionIsSharedWithTheRightsToMapAndToQueryOnly) {
  const auto allocated = owner_->TryAllocate({.size = kPage});
  ASSERT_TRUE(allocated.ok());
  const v1::PipeReply reply = client_->Take(allocated->ticket);
  ASSERT_FALSE(reply.has_error()) << reply.ShortDebugString();
  const UniqueFd section(static_cast<int>(reply.handle()));
  EXPECT_EQ(RightsOf(section), kMapAndQuery);
  const auto mapping = SystemOs().Map(section.get(), kPage);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_TRUE(SystemOs().Unmap(*mapping).ok());
  EXPECT_EQ(MapViewOfFile(LongToHandle(section.get()), FILE_MAP_READ | FILE_MAP_EXECUTE, 0, 0, kPage), nullptr);
}

TEST_F(SectionTest, ATicketWorksOnce) {
  const auto allocated = owner_->TryAllocate({.size = kPage});
  const UniqueFd section(static_cast<int>(client_->Take(allocated->ticket).handle()));
  EXPECT_EQ(client_->Take(allocated->ticket).error().reason(), v1::ERROR_REASON_TICKET_UNKNOWN);
  EXPECT_NE(client_->Hello().port(), 0u) << "a refusal does not close the pipe";
}

// The daemon gains no right that its client does not have.
TEST_F(SectionTest, AHandleThatMayOnlyReadIsRefused) {
  const UniqueFd file = core::MemoryFile(kPage);
  const UniqueFd reader = WithRights(file, SECTION_MAP_READ | SECTION_QUERY);
  EXPECT_TRUE(client_->Give(Import().ticket, ValueOf(reader)).has_error());
  EXPECT_FALSE(client_->Give(Import().ticket, ValueOf(file)).has_error());
}

TEST_F(SectionTest, WhatIsNoSectionIsRefused) {
  const UniqueFd event(HandleToLong(CreateEventW(nullptr, FALSE, FALSE, nullptr)));
  EXPECT_EQ(client_->Give(Import().ticket, ValueOf(event)).error().reason(), v1::ERROR_REASON_MEMORY_NOT_MEMORY);
  EXPECT_EQ(client_->Give(Import().ticket, 0x7ffffff0).error().reason(), v1::ERROR_REASON_MEMORY_NOT_MEMORY);
}

TEST_F(SectionTest, AHandleWithoutAValidTicketIsNotTaken) {
  const UniqueFd file = core::MemoryFile(kPage);
  EXPECT_EQ(client_->Give(core::FdTicket{}, ValueOf(file)).error().reason(), v1::ERROR_REASON_TICKET_UNKNOWN);
  const auto allocated = owner_->TryAllocate({.size = kPage});
  EXPECT_EQ(client_->Give(allocated->ticket, ValueOf(file)).error().reason(), v1::ERROR_REASON_FD_COUNT_WRONG);
}

TEST_F(SectionTest, AClientThatLeavesInTheMiddleHarmsNobody) {
  for (int index = 0; index < 20; ++index) {
    const auto allocated = owner_->TryAllocate({.size = kPage});
    ASSERT_TRUE(allocated.ok());
    v1::PipeRequest request;
    request.mutable_take_section()->set_fd_ticket(std::string(allocated->ticket.begin(), allocated->ticket.end()));
    const PipeClient hasty = Connect();
    EXPECT_TRUE(hasty.Send(request.SerializeAsString()));
  }
  EXPECT_NE(client_->Hello().port(), 0u);
}

}  // namespace
}  // namespace rnicd::pipes
