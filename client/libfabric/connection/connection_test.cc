#include "client/libfabric/connection/connection.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <optional>
#include <string>

#include "client/libfabric/connection/connection_fixture.h"
#include "client/libfabric/connection/handshake.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

// Two programs, A that connects and B that listens. By TCP, or in a folder.
class FiConnection : public testing::TestWithParam<bool> {
 protected:
  FiConnection() {
    if (GetParam()) {
      folder_.emplace();
    }
    listening_.emplace(queue_b_);
  }

  void Connect(std::string_view data = "from a") {
    ASSERT_EQ(Connection::Connect(queue_a_.operator*(), a_, listening_->address(), BytesOf(data), &of_a_), 0);
  }
  Seen NextOfA() { return Next(queue_a_, {&queue_b_}); }
  Seen NextOfB() { return Next(queue_b_, {&queue_a_}); }
  void Meet() {
    Connect();
    of_b_ = Connection::Take(NextOfB().info->handle);
    ASSERT_NE(of_b_, nullptr);
    ASSERT_EQ(of_b_->Accept(*queue_b_, b_, BytesOf("from b")), 0);
    ASSERT_EQ(NextOfB().event, FI_CONNECTED);
    ASSERT_EQ(NextOfA().event, FI_CONNECTED);
  }

  std::optional<FolderOfSockets> folder_;
  Queue queue_a_;
  Queue queue_b_;
  std::optional<Listening> listening_;
  FakeEndpoint a_{"queue pair a"};
  FakeEndpoint b_{"queue pair b"};
  std::unique_ptr<Connection> of_a_;
  std::unique_ptr<Connection> of_b_;
};

TEST_P(FiConnection, TwoEndpointsMeetAndExchangeWhatTheySay) {
  Connect();
  const Seen request = NextOfB();
  ASSERT_EQ(request.event, FI_CONNREQ);
  EXPECT_EQ(request.of, &listening_->pep->fid);
  EXPECT_EQ(request.data, "from a");
  EXPECT_EQ(request.info->handle->fclass, size_t{FI_CLASS_CONNREQ});
  sockaddr_storage peer;
  ASSERT_TRUE(LoadAddress(request.info->dest_addr, request.info->dest_addrlen, &peer));
  EXPECT_EQ(AddressText(peer), AddressText(of_a_->local()));

  of_b_ = Connection::Take(request.info->handle);
  ASSERT_NE(of_b_, nullptr);
  ASSERT_EQ(of_b_->Accept(*queue_b_, b_, BytesOf("from b")), 0);
  EXPECT_EQ(AddressText(of_b_->local()), AddressText(listening_->address()));
  EXPECT_EQ(AddressText(of_a_->peer()), AddressText(listening_->address()));
  const Seen at_b = NextOfB();
  EXPECT_EQ(at_b.event, FI_CONNECTED);
  EXPECT_EQ(at_b.of, &b_.Fid());
  EXPECT_EQ(at_b.data, "");
  const Seen at_a = NextOfA();
  EXPECT_EQ(at_a.event, FI_CONNECTED);
  EXPECT_EQ(at_a.of, &a_.Fid());
  EXPECT_EQ(at_a.data, "from b");
  EXPECT_EQ(a_.connected_with, "queue pair b");
  EXPECT_EQ(b_.connected_with, "queue pair a");
  EXPECT_FALSE(queue_a_.Readable());
  EXPECT_FALSE(queue_b_.Readable());
}

TEST_P(FiConnection, ARejectionBringsItsData) {
  Connect();
  const Seen request = NextOfB();
  ASSERT_EQ(fi_reject(listening_->pep, request.info->handle, "no", 2), 0);
  const Seen rejected = NextOfA();
  EXPECT_EQ(rejected.error, FI_ECONNREFUSED);
  EXPECT_EQ(rejected.of, &a_.Fid());
  EXPECT_EQ(rejected.data, "no");
  EXPECT_EQ(a_.connected_with, "");
  EXPECT_EQ(fi_reject(listening_->pep, request.info->handle, "no", 2), -FI_EINVAL);
}

TEST_P(FiConnection, ATakenRequestIsNoneAnyMore) {
  Connect();
  const Seen request = NextOfB();
  of_b_ = Connection::Take(request.info->handle);
  EXPECT_EQ(fi_reject(listening_->pep, request.info->handle, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(Connection::Take(&listening_->pep->fid), nullptr);
  EXPECT_EQ(Connection::Take(nullptr), nullptr);
  // The program gives it up: the peer learns of it.
  of_b_.reset();
  EXPECT_EQ(NextOfA().error, FI_ECONNRESET);
}

TEST_P(FiConnection, TheEndOfOneIsAShutdownOfTheOther) {
  Meet();
  of_a_.reset();
  const Seen end = NextOfB();
  EXPECT_EQ(end.event, FI_SHUTDOWN);
  EXPECT_EQ(end.of, &b_.Fid());
  EXPECT_EQ(b_.times_peer_gone, 1);
  EXPECT_EQ(a_.times_peer_gone, 0);
  EXPECT_FALSE(queue_b_.Readable());
  EXPECT_EQ(queue_a_.Read().result, -FI_EAGAIN);
}

TEST_P(FiConnection, TheEndOfTheAcceptingOneIsAShutdownOfTheOther) {
  Meet();
  of_b_.reset();
  EXPECT_EQ(NextOfA().event, FI_SHUTDOWN);
  EXPECT_EQ(a_.times_peer_gone, 1);
}

TEST_P(FiConnection, ShutdownIsReportedOnceAtBothEnds) {
  Meet();
  of_a_->Shutdown();
  of_b_->Shutdown();
  EXPECT_EQ(NextOfA().event, FI_SHUTDOWN);
  EXPECT_EQ(NextOfB().event, FI_SHUTDOWN);
  EXPECT_EQ(a_.times_peer_gone, 1);
  EXPECT_EQ(b_.times_peer_gone, 1);
  of_a_->Shutdown();
  EXPECT_EQ(queue_a_.Read().result, -FI_EAGAIN);
}

TEST_P(FiConnection, TwoThatConnectAtOnceBothMeet) {
  Queue& queue_a = queue_a_;
  Listening at_a(queue_a);
  FakeEndpoint accepting_a("second a");
  FakeEndpoint asking_b("second b");
  std::unique_ptr<Connection> from_b;
  Connect();
  ASSERT_EQ(Connection::Connect(*queue_b_, asking_b, at_a.address(), {}, &from_b), 0);
  of_b_ = Connection::Take(NextOfB().info->handle);
  const std::unique_ptr<Connection> of_accepting_a = Connection::Take(NextOfA().info->handle);
  ASSERT_EQ(of_b_->Accept(*queue_b_, b_, {}), 0);
  ASSERT_EQ(of_accepting_a->Accept(*queue_a, accepting_a, {}), 0);
  for (int index = 0; index < 2; ++index) {
    EXPECT_EQ(NextOfA().event, FI_CONNECTED);
    EXPECT_EQ(NextOfB().event, FI_CONNECTED);
  }
  EXPECT_EQ(accepting_a.connected_with, "second b");
  EXPECT_EQ(asking_b.connected_with, "second a");
}

TEST_P(FiConnection, NobodyAtTheAddressIsRefused) {
  listening_->Close();
  FakeEndpoint other("other");
  Connect();
  EXPECT_EQ(NextOfA().error, FI_ECONNREFUSED);
}

TEST_P(FiConnection, APassiveEndpointThatClosesEndsRequestsThatWereNotTaken) {
  Connect();
  Seen request = NextOfB();
  Queue second;
  FakeEndpoint late("late");
  std::unique_ptr<Connection> of_late;
  ASSERT_EQ(Connection::Connect(*second, late, listening_->address(), {}, &of_late), 0);
  (*queue_b_).Progress();
  listening_->Close();
  EXPECT_EQ(NextOfA().error, FI_ECONNRESET);
  EXPECT_EQ(Next(second, {&queue_b_}).error, FI_ECONNRESET);
  // The one that was not read has left the queue.
  EXPECT_EQ(queue_b_.Read().result, -FI_EAGAIN);
}

TEST_P(FiConnection, TooMuchDataIsRefused) {
  const std::string data(kConnectDataMax + 1, 'x');
  EXPECT_EQ(Connection::Connect(*queue_a_, a_, listening_->address(), BytesOf(data), &of_a_), -FI_EINVAL);
  Connect(std::string_view(data).substr(1));
  const Seen request = NextOfB();
  EXPECT_EQ(request.data, data.substr(1));
  EXPECT_EQ(fi_reject(listening_->pep, request.info->handle, data.data(), data.size()), -FI_EINVAL);
  of_b_ = Connection::Take(request.info->handle);
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, BytesOf(data)), -FI_EINVAL);
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, {}), 0);
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, {}), -FI_EINVAL);
}

TEST_P(FiConnection, AQueuePairThatDoesNotConnectIsAnErrorOfItsOwn) {
  a_.connect_result = -FI_ENOMEM;
  Connect();
  of_b_ = Connection::Take(NextOfB().info->handle);
  b_.connect_result = -FI_EPERM;
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, {}), -FI_EPERM);
  of_b_.reset();
  EXPECT_EQ(NextOfA().error, FI_ECONNRESET);

  b_.connect_result = 0;
  Connect();
  of_b_ = Connection::Take(NextOfB().info->handle);
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, {}), 0);
  EXPECT_EQ(NextOfB().event, FI_CONNECTED);
  EXPECT_EQ(NextOfA().error, FI_ENOMEM);
  EXPECT_EQ(NextOfB().event, FI_SHUTDOWN);
}

TEST_P(FiConnection, APeerThatNoQueuePairReachesIsRefusedAtOnceFromThenOn) {
  Connect();
  of_b_ = Connection::Take(NextOfB().info->handle);
  b_.connect_result = -FI_ENOENT;
  EXPECT_EQ(of_b_->Accept(*queue_b_, b_, {}), -FI_ENOENT);
  of_b_.reset();
  EXPECT_EQ(NextOfA().error, FI_EHOSTUNREACH);
  EXPECT_EQ(Connection::Connect(*queue_a_, a_, listening_->address(), {}, &of_a_), -FI_EHOSTUNREACH);
}

TEST_P(FiConnection, APeerThatEndsAsSoonAsItHasAcceptedWasConnected) {
  a_.connect_result = -FI_ENOENT;
  Connect();
  of_b_ = Connection::Take(NextOfB().info->handle);
  ASSERT_EQ(of_b_->Accept(*queue_b_, b_, BytesOf("from b")), 0);
  of_b_.reset();
  EXPECT_EQ(NextOfA().event, FI_CONNECTED);
  EXPECT_EQ(NextOfA().event, FI_SHUTDOWN);
  EXPECT_EQ(a_.times_peer_gone, 1);
}

TEST_P(FiConnection, ConnectsFromTheAddressThatItIsGiven) {
  const sockaddr_storage local = Loopback(0);
  ASSERT_EQ(Connection::Connect(*queue_a_, a_, listening_->address(), {}, &of_a_, local), 0);
  const Seen request = NextOfB();
  sockaddr_storage peer;
  ASSERT_TRUE(LoadAddress(request.info->dest_addr, request.info->dest_addrlen, &peer));
  SetPort(&peer, 0);
  EXPECT_EQ(AddressText(peer), "127.0.0.1:0");
}

std::string NameOfWay(const testing::TestParamInfo<bool>& way) { return way.param ? "Folder" : "Tcp"; }

INSTANTIATE_TEST_SUITE_P(Ways, FiConnection, testing::Bool(), NameOfWay);

}  // namespace
}  // namespace rnicd::fi
