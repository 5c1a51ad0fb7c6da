// The fd socket used incorrectly in every way: a clear refusal or a closed connection, and nothing leaks.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kSentBytes = 4 * kPage;

class FdSocketMisuse : public DaemonTest {
 protected:
  std::string path() { return daemon().fd_socket(); }
};

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
