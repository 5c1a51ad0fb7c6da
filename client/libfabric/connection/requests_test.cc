// Peers that are hostile or broken, on sockets of their own: they end their connection and nothing else.
#include "client/libfabric/connection/requests.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "base/waiting_fixture.h"
#include "client/libfabric/connection/connection_fixture.h"
#include "client/libfabric/connection/handshake.h"

namespace rnicd::fi {
namespace {

std::string RequestBytes() {
  Message message;
  message.sender = Loopback(0);
  message.queue_pair = {std::byte{1}};
  return TextOf(Encode(message));
}

std::string Changed(std::string bytes, size_t at, char byte) {
  bytes[at] = byte;
  return bytes;
}

void Say(const UniqueFd& socket, std::string_view bytes) {
  ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// A program that listens, and serves an honest peer whatever the others do.
class FiHostilePeer : public testing::TestWithParam<bool> {
 protected:
  FiHostilePeer() {
    if (GetParam()) {
      folder_.emplace();
    }
    listening_.emplace(queue_);
  }
  UniqueFd Peer() { return RawPeer(listening_->address()); }
  void ExpectAnHonestPeerIsServed() {
    Queue queue;
    FakeEndpoint asking("asking");
    FakeEndpoint accepting("accepting");
    std::unique_ptr<Connection> connection;
    ASSERT_EQ(Connection::Connect(*queue, asking, listening_->address(), {}, &connection), 0);
    const Seen request = Next(queue_, {&queue});
    ASSERT_EQ(request.event, FI_CONNREQ);
    const std::unique_ptr<Connection> accepted = Connection::Take(request.info->handle);
    ASSERT_NE(accepted, nullptr);
    ASSERT_EQ(accepted->Accept(*queue_, accepting, {}), 0);
    EXPECT_EQ(Next(queue_, {}).event, FI_CONNECTED);
    EXPECT_EQ(Next(queue, {&queue_}).event, FI_CONNECTED);
    (*queue_).Forget(accepting.Fid());
  }

  std::optional<FolderOfSockets> folder_;
  Queue queue_;
  std::optional<Listening> listening_;
};

TEST_P(FiHostilePeer, WhatIsNoRequestEndsThatConnection) {
  const std::string answer = Changed(RequestBytes(), 6, 2);
  const std::vector<std::string> wrong = {
      std::string(kMessageBytes, 'G'), std::string(64 * kMessageBytes, '\0'), answer,
      Changed(RequestBytes(), 8, 65),  Changed(RequestBytes(), 9, '\xFF'),    Changed(RequestBytes(), 11, '\xFF'),
      Changed(RequestBytes(), 12, 5),  Changed(RequestBytes(), 4, 9),
  };
  for (const std::string& bytes : wrong) {
    const UniqueFd peer = Peer();
    Say(peer, bytes);
    EXPECT_TRUE(ClosedByPeer(peer, queue_));
    EXPECT_EQ(queue_.Read().result, -FI_EAGAIN);
  }
  ExpectAnHonestPeerIsServed();
}

TEST_P(FiHostilePeer, HalfARequestWaitsForItsRestOrItsEnd) {
  UniqueFd peer = Peer();
  Say(peer, RequestBytes().substr(0, 100));
  UniqueFd other = Peer();
  Say(other, RequestBytes().substr(0, 351));
  (*queue_).Progress();
  EXPECT_EQ(queue_.Read().result, -FI_EAGAIN);
  peer.Reset(-1);
  Say(other, RequestBytes().substr(351));
  const Seen request = queue_.Next();
  EXPECT_EQ(request.event, FI_CONNREQ);
  EXPECT_EQ(queue_.Read().result, -FI_EAGAIN);
  EXPECT_FALSE(queue_.Readable());
  ExpectAnHonestPeerIsServed();
}

TEST_P(FiHostilePeer, SilentPeersKeepNobodyOut) {
  std::vector<UniqueFd> silent;
  for (size_t index = 0; index < 300; ++index) {
    silent.push_back(Peer());
    (*queue_).Progress();
  }
  ExpectAnHonestPeerIsServed();
  // The oldest have lost their sockets, and the latest have not.
  EXPECT_TRUE(ClosedByPeer(silent.front(), queue_));
  EXPECT_TRUE(ClosedByPeer(silent[300 - kSilentPeersMax - 2], queue_));
  char byte = 0;
  EXPECT_EQ(recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_FALSE(queue_.Readable());
}

TEST_P(FiHostilePeer, WhatFollowsTheHandshakeEndsTheConnection) {
  const UniqueFd peer = Peer();
  Say(peer, RequestBytes() + "and more");
  FakeEndpoint endpoint("endpoint");
  const std::unique_ptr<Connection> accepted = Connection::Take(queue_.Next().info->handle);
  ASSERT_EQ(accepted->Accept(*queue_, endpoint, {}), 0);
  EXPECT_EQ(queue_.Next().event, FI_CONNECTED);
  EXPECT_EQ(queue_.Next().event, FI_SHUTDOWN);
  EXPECT_EQ(endpoint.times_peer_gone, 1);
  ExpectAnHonestPeerIsServed();
}

TEST_P(FiHostilePeer, AListenerThatAnswersGarbageIsAProtocolError) {
  const Seen nothing = queue_.Read();
  const std::string request = RequestBytes();
  const std::pair<std::string, int> answers[] = {{std::string(kMessageBytes, 'G'), EPROTO},
                                                 {request, EPROTO},
                                                 {Changed(Changed(request, 6, 2), 10, 1).substr(0, 351), FI_ECONNRESET},
                                                 {"", FI_ECONNRESET}};
  listening_->Close();
  for (const auto& [answer, error] : answers) {
    std::unique_ptr<Listener> listener;
    ASSERT_EQ(Listener::Open(Loopback(0), &listener), 0);
    ASSERT_EQ(listener->Listen(1), 0);
    FakeEndpoint endpoint("endpoint");
    std::unique_ptr<Connection> connection;
    ASSERT_EQ(Connection::Connect(*queue_, endpoint, listener->address(), {}, &connection), 0);
    Stream stream;
    ASSERT_TRUE(Eventually([&] {
      (*queue_).Progress();
      return listener->Accept(&stream) == 0;
    }));
    IncomingMessage incoming;
    ASSERT_TRUE(Eventually([&] {
      (*queue_).Progress();
      return incoming.Receive(stream.socket.get()) == Transfer::kDone;
    }));
    Say(stream.socket, answer);
    stream.socket.Reset(-1);
    EXPECT_EQ(queue_.Next().error, error);
    EXPECT_EQ(endpoint.connected_with, "");
  }
}

TEST_P(FiHostilePeer, RequestsThatTheProgramLeavesWaitingAreBounded) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> peers;
  for (size_t index = 0; index < kWaitingRequestsMax + 1; ++index) {
    peers.push_back(Peer());
    Say(peers.back(), RequestBytes());
    (*queue_).Progress();
  }
  std::vector<Seen> requests;
  while (requests.size() < kWaitingRequestsMax) {
    requests.push_back(queue_.Next());
    ASSERT_EQ(requests.back().event, FI_CONNREQ);
  }
  EXPECT_EQ(queue_.Read().result, -FI_EAGAIN);
  EXPECT_FALSE(queue_.Readable());
  // The next one comes when there is room.
  EXPECT_EQ(fi_reject(listening_->pep, requests.front().info->handle, nullptr, 0), 0);
  EXPECT_TRUE(queue_.Readable());
  EXPECT_EQ(queue_.Next().event, FI_CONNREQ);
  limit.rlim_cur = before;
  peers.clear();
  listening_->Close();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_P(FiHostilePeer, WithoutDescriptorsPeersWaitAndNobodySpins) {
  const UniqueFd peer = Peer();
  Say(peer, RequestBytes());
  std::vector<UniqueFd> all;
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  do {
    all.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (all.back().valid());
  EXPECT_TRUE(queue_.Readable());
  EXPECT_EQ(queue_.Read().result, -FI_EAGAIN);
  EXPECT_FALSE(queue_.Readable());
  all.clear();
  EXPECT_EQ(queue_.Next().event, FI_CONNREQ);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, FiHostilePeer, testing::Bool(),
                         [](const auto& way) { return std::string(way.param ? "Folder" : "Tcp"); });

}  // namespace
}  // namespace rnicd::fi
