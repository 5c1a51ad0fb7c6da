// Peers that speak the handshake right and are wrong otherwise, or die. They end their own endpoint, and no other.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files/unique_fd.h"
#include "client/c/rnicd.h"
#include "client/libfabric/connection/handshake.h"
#include "client/libfabric/limits.h"
#include "client/libfabric/socket_address.h"
#include "client/libfabric/transfers.h"
#include "tests/libfabric/fabric_pair.h"
#include "tests/libfabric/start_program.h"

namespace rnicd::fi {
namespace {

// A client of the daemon's without the provider: a queue pair, and messages of any kind.
class RawPeer {
 public:
  RawPeer() {
    EXPECT_EQ(rnicd_open_session(nullptr, &session_), 0);
    EXPECT_EQ(rnicd_create_cq(session_, 256, 0, &cq_), 0);
    EXPECT_EQ(rnicd_create_qp(cq_, cq_, nullptr, &qp_), 0);
    auto info = RNICD_INIT(rnicd_qp_info);
    EXPECT_EQ(rnicd_query_qp(qp_, &info), 0);
    const auto* const first = reinterpret_cast<const std::byte*>(info.address);
    address_.assign(first, first + info.address_bytes);
    EXPECT_EQ(rnicd_create_chain(&chain_), 0);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() {
    rnicd_close_chain(chain_);
    rnicd_close_qp(qp_);
    rnicd_close_cq(cq_);
    rnicd_close_session(session_, nullptr);
  }

  const std::vector<std::byte>& address() const { return address_; }
  void ConnectQueuePair(const std::vector<std::byte>& peer) {
    EXPECT_EQ(rnicd_connect_qp(qp_, peer.data(), peer.size()), 0);
  }
  // The result of the post.
  int Send(const void* bytes, size_t length) {
    rnicd_reset_chain(chain_);
    rnicd_chain_send_inline(chain_, bytes, length, 0, 0);
    return rnicd_post(qp_, chain_);
  }

 private:
  rnicd_session* session_ = nullptr;
  rnicd_cq* cq_ = nullptr;
  rnicd_qp* qp_ = nullptr;
  rnicd_chain* chain_ = nullptr;
  std::vector<std::byte> address_;
};

// A pair that must go on whatever happens beside it, and a listener of its server for others.
class HostilePeers : public LibfabricTest {
 protected:
  HostilePeers() {
    fid_pep* made = nullptr;
    EXPECT_EQ(fi_passive_ep(server().fabric.get(), server().info.get(), &made, nullptr), 0);
    listener_.reset(made);
    EXPECT_EQ(fi_pep_bind(made, &server().events->fid, 0), 0);
    EXPECT_EQ(fi_listen(made), 0);
    size_t bytes = sizeof(address_);
    EXPECT_EQ(fi_getname(&made->fid, &address_, &bytes), 0);
    into_ = server().Register(buffer_.data(), buffer_.size(), FI_RECV);
  }
  void TearDown() override {
    ExpectThePairGoesOn();
    into_.reset();
    listener_.reset();
    pair_.reset();
    LibfabricTest::TearDown();
  }

  Program& server() { return pair_->server; }
  uint16_t port() const { return PortOf(address_); }

  // A handshake by hand, with this address of a queue pair.
  UniqueFd Ask(const std::vector<std::byte>& queue_pair) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), AddressBytes(address_)), 0);
    const MessageBytes request =
        Encode({.kind = Message::Kind::kRequest, .sender = {}, .queue_pair = queue_pair, .data = {}});
    EXPECT_EQ(send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    return socket;
  }
  // The server's endpoint for the next request, and what fi_accept says.
  Owned<fid_ep> Accept(int* result) {
    std::vector<std::byte> entry;
    EXPECT_EQ(server().NextEvent(&entry), static_cast<uint32_t>(FI_CONNREQ));
    const Info asked(reinterpret_cast<fi_eq_cm_entry*>(entry.data())->info);
    Owned<fid_ep> endpoint = server().MakeEndpoint(asked.get());
    *result = fi_accept(endpoint.get(), nullptr, 0);
    return endpoint;
  }
  Owned<fid_ep> AcceptAndConnect() {
    int result = -1;
    Owned<fid_ep> endpoint = Accept(&result);
    EXPECT_EQ(result, 0);
    EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_CONNECTED));
    return endpoint;
  }
  // The server's endpoint, connected with that queue pair.
  Owned<fid_ep> ConnectWith(RawPeer& peer, UniqueFd* socket) {
    *socket = Ask(peer.address());
    Owned<fid_ep> endpoint = AcceptAndConnect();
    MessageBytes answer;
    EXPECT_EQ(recv(socket->get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
    const std::optional<Message> parsed = Parse(answer);
    EXPECT_TRUE(parsed.has_value());
    peer.ConnectQueuePair(parsed->queue_pair);
    return endpoint;
  }
  void Receive(const Owned<fid_ep>& endpoint, uintptr_t number) {
    EXPECT_EQ(fi_recv(endpoint.get(), buffer_.data(), 64, fi_mr_desc(into_.get()), 0, Context(number)), 0);
  }

 private:
  void ExpectThePairGoesOn() {
    Receive(pair_->server_endpoint, 99);
    EXPECT_EQ(fi_inject(pair_->client_endpoint.get(), "x", 1, 0), 0);
    EXPECT_EQ(server().NextCompletion().op_context, Context(99));
  }

  std::unique_ptr<Pair> pair_ = std::make_unique<Pair>();
  const Pages buffer_{4096};
  Owned<fid_mr> into_;
  Owned<fid_pep> listener_;
  sockaddr_storage address_ = {};
};

TEST_F(HostilePeers, QueuePairThatDoesNotExistIsRefusedByAccept) {
  RawPeer peer;
  std::vector<std::byte> wrong = peer.address();
  wrong.back() ^= std::byte{0x55};
  for (const std::vector<std::byte>& address : {wrong, std::vector<std::byte>(64, std::byte{0xff}), {}}) {
    const UniqueFd socket = Ask(address);
    int result = 0;
    const Owned<fid_ep> endpoint = Accept(&result);
    EXPECT_LT(result, 0);
  }
}

TEST_F(HostilePeers, AnswerThatNamesNoQueuePairIsAnErrorOfTheConnect) {
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(listen(listening.get(), 1), 0);
  sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  ASSERT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  const Owned<fid_ep> endpoint = server().MakeEndpoint(server().info.get());
  ASSERT_EQ(fi_connect(endpoint.get(), &address, nullptr, 0), 0);
  const UniqueFd socket(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const MessageBytes answer = Encode({.kind = Message::Kind::kAccept,
                                      .sender = {},
                                      .queue_pair = std::vector<std::byte>(20, std::byte{1}),
                                      .data = {}});
  ASSERT_EQ(send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  EXPECT_EQ(server().NextEventError().fid, &endpoint->fid);
}

// Nothing arrives before the other end has connected its queue pair, too, which it never does.
TEST_F(HostilePeers, QueuePairOfAnotherProcessOrOneThatIsNamedTwiceTransfersNothing) {
  RawPeer other;
  const UniqueFd first_socket = Ask(other.address());
  const Owned<fid_ep> first = AcceptAndConnect();
  const UniqueFd second_socket = Ask(other.address());
  int result = 0;
  const Owned<fid_ep> second = Accept(&result);
  if (result == 0) {
    EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_CONNECTED));
  }
  EXPECT_EQ(fi_inject(first.get(), "x", 1, 0), 0);
}

TEST_F(HostilePeers, MessageWithoutTheHeaderOrOfAnUnknownKindIsAnErrorOfItsReceive) {
  RawPeer peer;
  UniqueFd socket;
  const Owned<fid_ep> endpoint = ConnectWith(peer, &socket);
  const MessageHeader unknown = {.kind = 77, .written_bytes = ~0U, .data = ~uint64_t{0}};
  const std::array<size_t, 3> lengths = {0, kHeaderBytes - 1, kHeaderBytes};
  for (uintptr_t number = 0; number < lengths.size(); ++number) {
    Receive(endpoint, number);
    EXPECT_EQ(peer.Send(&unknown, lengths[number]), 0);
    const fi_cq_err_entry error = server().NextError();
    EXPECT_EQ(error.op_context, Context(number));
    EXPECT_EQ(error.err, FI_EIO);
    EXPECT_EQ(error.len, 0U);
  }
  // The endpoint itself goes on.
  const MessageHeader message = {.kind = MessageHeader::kMessage, .written_bytes = 0, .data = 0};
  Receive(endpoint, 7);
  EXPECT_EQ(peer.Send(&message, sizeof(message)), 0);
  EXPECT_EQ(server().NextCompletion().op_context, Context(7));
}

TEST_F(HostilePeers, FloodOfMessagesWaitsInThePeersQueue) {
  RawPeer peer;
  UniqueFd socket;
  Owned<fid_ep> endpoint = ConnectWith(peer, &socket);
  const MessageHeader message = {.kind = MessageHeader::kMessage, .written_bytes = 0, .data = 0};
  int posted = 0;
  while (posted < 10000 && peer.Send(&message, sizeof(message)) == 0) {
    ++posted;
  }
  EXPECT_LT(posted, 10000);
  for (uintptr_t number = 0; number < 3; ++number) {
    Receive(endpoint, number);
    EXPECT_EQ(server().NextCompletion().op_context, Context(number));
  }
}

// Says something after the handshake.
TEST_F(HostilePeers, TalkAfterTheHandshakeEndsTheEndpoint) {
  RawPeer peer;
  UniqueFd socket;
  const Owned<fid_ep> endpoint = ConnectWith(peer, &socket);
  Receive(endpoint, 1);
  EXPECT_EQ(send(socket.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(server().NextError().op_context, Context(1));
}

// A process that is killed at some stage of connecting; the numbers are of PeerStage in tests/libfabric/process.
class PeersThatDie : public HostilePeers {
 protected:
  std::unique_ptr<test::ChildProcess> Start(int stage) {
    return StartProgram({"peer", std::to_string(stage), std::to_string(port())});
  }
  static void Kill(test::ChildProcess& peer) {
    EXPECT_TRUE(test::Eventually([&] { return peer.output().Text() == "there\n"; })) << peer.errors().Text();
    peer.Signal(SIGKILL);
    EXPECT_TRUE(peer.WaitForEnd().has_value());
  }
};

TEST_F(PeersThatDie, BeforeTheRequestAreNotHeardOf) {
  const std::unique_ptr<test::ChildProcess> peer = Start(0);
  Kill(*peer);
  uint32_t event = 0;
  std::array<std::byte, 512> entry;
  EXPECT_EQ(fi_eq_read(server().events.get(), &event, entry.data(), entry.size(), 0), -FI_EAGAIN);
}

TEST_F(PeersThatDie, AfterTheRequestEndTheEndpointThatAccepts) {
  const std::unique_ptr<test::ChildProcess> peer = Start(1);
  Kill(*peer);
  int result = 0;
  const Owned<fid_ep> endpoint = Accept(&result);
  // The daemon knows before the socket does.
  if (result == 0) {
    EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_CONNECTED));
    EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  }
}

TEST_F(PeersThatDie, BeforeTheyHaveReadTheAnswerEndTheEndpoint) {
  const std::unique_ptr<test::ChildProcess> peer = Start(1);
  const Owned<fid_ep> endpoint = AcceptAndConnect();
  Receive(endpoint, 1);
  Kill(*peer);
  EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(server().NextError().op_context, Context(1));
}

TEST_F(PeersThatDie, ConnectedEndTheEndpoint) {
  const std::unique_ptr<test::ChildProcess> peer = Start(2);
  const Owned<fid_ep> endpoint = AcceptAndConnect();
  Receive(endpoint, 1);
  Kill(*peer);
  EXPECT_EQ(server().NextEvent(), static_cast<uint32_t>(FI_SHUTDOWN));
  EXPECT_EQ(server().NextError().op_context, Context(1));
}

}  // namespace
}  // namespace rnicd::fi
