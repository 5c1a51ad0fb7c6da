// The fd socket used incorrectly in every way: a clear refusal or a closed connection, and nothing leaks.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "tests/support/admin_client.h"
#include "tests/support/child_client.h"
#include "tests/support/expect.h"
#include "tests/support/fd_exchange.h"
#include "tests/support/memory_file.h"
#include "tests/support/raw_socket.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kSentBytes = 4 * kPage;

class FdSocketMisuse : public DaemonTest {
 protected:
  std::string path() { return daemon().fd_socket(); }
};

TEST_F(FdSocketMisuse, TicketMustHaveBeenIssued) {
  TestSession session(daemon());
  ExpectFdRefused(FetchFd(path(), std::string(16, '\0')), ErrorReason::TICKET_UNKNOWN);
  ExpectFdRefused(FetchFd(path(), std::string(16, 'x')), ErrorReason::TICKET_UNKNOWN);
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  ExpectFdRefused(SendFd(path(), std::string(16, 'x'), file.get()), ErrorReason::TICKET_UNKNOWN);
}

TEST_F(FdSocketMisuse, TicketWorksOnce) {
  TestSession session(daemon());
  const std::string fetch_ticket = session.Allocate(kSentBytes).fd_ticket();
  session.Fetch(fetch_ticket);
  ExpectFdRefused(FetchFd(path(), fetch_ticket), ErrorReason::TICKET_UNKNOWN);
  const std::string send_ticket = session.Import(kSentBytes).fd_ticket();
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  ExpectFdOk(SendFd(path(), send_ticket, file.get()));
  ExpectFdRefused(SendFd(path(), send_ticket, file.get()), ErrorReason::TICKET_UNKNOWN);
}

// Another process, of the same user or of another one, gets nothing and does not consume the ticket.
TEST_F(FdSocketMisuse, TicketWorksForItsProcessOnly) {
  TestSession session(daemon());
  const std::string ticket = session.Allocate(kSentBytes).fd_ticket();
  for (const uid_t uid : {geteuid(), WorkloadUid()}) {
    const auto thief = ChildClient::Start(daemon(), uid);
    ASSERT_NE(thief, nullptr);
    thief->MustRun("open");
    EXPECT_EQ(thief->Run("redeem " + absl::BytesToHexString(ticket)).reason, "TICKET_UNKNOWN");
  }
  EXPECT_TRUE(session.Fetch(ticket).valid());
}

TEST_F(FdSocketMisuse, TicketDiesWithItsMemory) {
  TestSession session(daemon());
  const v1::AllocateMemoryResponse memory = session.Allocate(kSentBytes);
  ExpectOk(session.Release(memory.memory_id()));
  ExpectFdRefused(FetchFd(path(), memory.fd_ticket()), ErrorReason::TICKET_UNKNOWN);
  EXPECT_EQ(AdminStatus(daemon()).fd_tickets(), 0u);
}

TEST_F(FdSocketMisuse, TicketDiesWithItsSession) {
  std::string ticket;
  {
    TestSession session(daemon());
    ticket = session.Allocate(kSentBytes).fd_ticket();
    ExpectOk(session.CloseSession());
  }
  ExpectFdRefused(FetchFd(path(), ticket), ErrorReason::TICKET_UNKNOWN);
}

TEST_F(FdSocketMisuse, PacketMustBeARequest) {
  TestSession session(daemon());
  const std::string good = FdRequestBytes(session.Allocate(kSentBytes).fd_ticket(), 0);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), std::string("GET / HTTP/1.1"),
        good.substr(0, good.size() / 2), good.substr(0, 1), FdRequestBytes("short", 0),
        FdRequestBytes(std::string(17, 'x'), 0), FdRequestBytes("", 0) + "\x10", std::string(4096, 'z')}) {
    ExpectFdRefused(ExchangeFd(path(), bytes), ErrorReason::FD_PACKET_MALFORMED);
  }
}

TEST_F(FdSocketMisuse, OversizedPacketIsRefused) {
  TestSession session(daemon());
  // A valid request, followed by an unknown field that makes it too long.
  std::string bytes = FdRequestBytes(session.Allocate(kSentBytes).fd_ticket(), 0);
  const size_t padding = 4096;
  bytes.append("\x7a\x80\x20").append(padding, 'p');
  ExpectFdRefused(ExchangeFd(path(), bytes), ErrorReason::FD_PACKET_MALFORMED);
  ExpectFdRefused(ExchangeFd(path(), std::string(65536, 'p')), ErrorReason::FD_PACKET_MALFORMED);
}

// To the kernel's read an empty packet looks like a closed connection.
TEST_F(FdSocketMisuse, EmptyPacketIsRefused) {
  ExpectFdRefused(ExchangeFd(path(), ""), ErrorReason::FD_PACKET_MALFORMED);
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  ExpectFdRefused(ExchangeFd(path(), "", {file.get()}), ErrorReason::FD_PACKET_MALFORMED);
}

TEST_F(FdSocketMisuse, OneDescriptorIsTheMost) {
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  for (const size_t count : {2, 3, 100, 253}) {
    TestSession session(daemon());
    const std::string ticket = session.Import(kSentBytes).fd_ticket();
    const std::vector<int> many(count, file.get());
    ExpectFdRefused(ExchangeFd(path(), FdRequestBytes(ticket, 1), many), ErrorReason::FD_COUNT_WRONG);
    ExpectFdRefused(ExchangeFd(path(), FdRequestBytes(ticket, static_cast<uint32_t>(count)), many),
                    ErrorReason::FD_COUNT_WRONG);
  }
}

TEST_F(FdSocketMisuse, DescriptorsMustBeAsAnnounced) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  const std::string ticket = session.Import(kSentBytes).fd_ticket();
  ExpectFdRefused(ExchangeFd(path(), FdRequestBytes(ticket, 1)), ErrorReason::FD_COUNT_WRONG);
  ExpectFdRefused(ExchangeFd(path(), FdRequestBytes(ticket, 0), {file.get()}), ErrorReason::FD_COUNT_WRONG);
  ExpectFdRefused(ExchangeFd(path(), FdRequestBytes(ticket, UINT32_MAX), {file.get()}), ErrorReason::FD_COUNT_WRONG);
  // Refused before the ticket was checked, so the ticket still works.
  ExpectFdOk(SendFd(path(), ticket, file.get()));
}

TEST_F(FdSocketMisuse, DescriptorMustGoTheRightWay) {
  TestSession session(daemon());
  const UniqueFd file = MakeSealableMemfd(kSentBytes);
  const std::string fetch_ticket = session.Allocate(kSentBytes).fd_ticket();
  ExpectFdRefused(SendFd(path(), fetch_ticket, file.get()), ErrorReason::FD_COUNT_WRONG);
  const std::string send_ticket = session.Import(kSentBytes).fd_ticket();
  ExpectFdRefused(FetchFd(path(), send_ticket), ErrorReason::FD_COUNT_WRONG);
  // The tickets are not used up.
  EXPECT_TRUE(session.Fetch(fetch_ticket).valid());
  ExpectFdOk(SendFd(path(), send_ticket, file.get()));
}

// The owner must start over.
TEST_F(FdSocketMisuse, ImportWhoseFileIsRefusedLosesItsMemoryObject) {
  TestSession session(daemon());
  const v1::ImportMemoryResponse memory = session.Import(kSentBytes);
  const UniqueFd short_file = MakeSealableMemfd(kSentBytes - kPage);
  ExpectFdRefused(SendFd(path(), memory.fd_ticket(), short_file.get()), ErrorReason::MEMORY_TOO_SHORT);
  ExpectRefused(session.Release(memory.memory_id()), ErrorReason::OBJECT_NOT_FOUND, "memory_id");
  EXPECT_EQ(session.Use("memory_objects").used(), 0u);
}

TEST_F(FdSocketMisuse, ClientThatDoesNotWaitForTheReplyDoesNoHarm) {
  TestSession session(daemon());
  for (int count = 0; count < 20; ++count) {
    const UniqueFd file = MakeSealableMemfd(kSentBytes);
    FdSocket sender(path());
    EXPECT_TRUE(sender.Send(FdRequestBytes(session.Import(kSentBytes).fd_ticket(), 1), {file.get()}));
    FdSocket fetcher(path());
    EXPECT_TRUE(fetcher.Send(FdRequestBytes(session.Allocate(kSentBytes).fd_ticket(), 0)));
  }
  ExpectOk(session.CloseSession());
}

TEST_F(FdSocketMisuse, SecondPacketOnAConnectionIsNotServed) {
  TestSession session(daemon());
  FdSocket socket(path());
  EXPECT_TRUE(socket.Send(FdRequestBytes(session.Allocate(kSentBytes).fd_ticket(), 0)));
  ExpectFdOk(socket.Receive());
  EXPECT_TRUE(HangsUp(socket.get()));
}

// No connection of the test's own has to hurry: only the silent one is made.
TEST(FdSocketSilence, SilentClientIsDropped) {
  const auto daemon = DaemonProcess::Start({.flags = {"--silent_connection_timeout_ms=100"}});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const FdSocket socket((*daemon)->fd_socket());
  ASSERT_TRUE(socket.connected());
  EXPECT_TRUE(HangsUp(socket.get()));
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

}  // namespace
}  // namespace rnicd::test
