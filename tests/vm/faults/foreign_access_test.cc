// The rights of a peer that knows only a queue pair's address and a region's address and token, as text.
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

// Another process with registered memory and a queue pair, of a user without privileges.
class Owner {
 public:
  explicit Owner(const DaemonProcess& daemon, uint32_t flags = kEveryRight)
      : client_(ChildClient::Start(daemon, WorkloadUid())) {
    client_->MustRun("open owner");
    memory_id_ = client_->MustRun("alloc " + std::to_string(kMessageBytes)).values["memory"];
    const ChildAnswer region =
        client_->MustRun("register " + memory_id_ + " " + std::to_string(kMessageBytes) + " " + std::to_string(flags));
    mr_id_ = region.values.at("mr");
    remote_ = {.address = region.number("base"), .token = static_cast<uint32_t>(region.number("remote"))};
  }

  ChildClient& client() { return *client_; }
  // Remote address of the first byte.
  const RemoteBytes& remote() const { return remote_; }

  // Connects a new queue pair to the peer.
  void ConnectTo(ForeignPeer& peer) {
    const std::string address = BytesFromHex(client_->MustRun("qp").values["address"]).value();
    client_->MustRun("peer " + absl::BytesToHexString(peer.address()));
    peer.Connect(address);
  }
  std::string Text() {
    return BytesFromHex(client_->MustRun("peek 0 " + std::to_string(kMessageBytes)).values["bytes"]).value();
  }
  void SetText(const std::string& text) { client_->MustRun("poke 0 " + absl::BytesToHexString(text)); }
  void Deregister() { client_->MustRun("deregister " + mr_id_); }

 private:
  const std::unique_ptr<ChildClient> client_;
  std::string memory_id_;
  std::string mr_id_;
  RemoteBytes remote_;
};

void ExpectPeerReachesMemory(DaemonProcess& daemon, const PeerOptions& options) {
  Owner owner(daemon);
  ChildAnswer identity = owner.client().MustRun("identity");
  EXPECT_NE(identity.number("uid"), 0u);
  EXPECT_EQ(identity.values["capabilities"], "0000000000000000");
  ForeignPeer peer(options);
  owner.ConnectTo(peer);
  peer.MustWrite(owner.remote(), 7, kMessageBytes);
  EXPECT_TRUE(owner.Text() == Pattern(7, kMessageBytes));
  owner.SetText(Pattern(8, kMessageBytes));
  peer.MustRead(owner.remote(), Pattern(8, kMessageBytes));
  // A range that begins and ends within pages.
  peer.MustWrite(owner.remote() + 4090, 9, 5000);
  EXPECT_TRUE(owner.Text() == Pattern(8, kMessageBytes).replace(4090, 5000, Pattern(9, 5000)));
}

class ForeignAccess : public FaultTest {};

TEST_F(ForeignAccess, PeerReachesTheMemoryOfAClientWithoutPrivileges) {
  ExpectPeerReachesMemory(daemon(), {.gid = "ipv4"});
}

TEST_F(ForeignAccess, DeregisteredTokenIsRefused) {
  Owner owner(daemon());
  ForeignPeer peer;
  owner.ConnectTo(peer);
  peer.MustWrite(owner.remote(), 1, kMessageBytes);
  owner.Deregister();
  EXPECT_EQ(peer.Write(owner.remote(), 2, 64).error, "REM_ACCESS_ERR");
  owner.client().MustRun("disconnected");
  ForeignPeer second;
  owner.ConnectTo(second);
  EXPECT_EQ(second.Read(owner.remote(), 64).error, "REM_ACCESS_ERR");
  owner.client().MustRun("disconnected");
  EXPECT_TRUE(owner.Text() == Pattern(1, kMessageBytes));
}

TEST_F(ForeignAccess, MessagesAndRdmaGoBothWays) {
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  memory.Register();
  ForeignLink link(session);
  link.queue.MustPost({ReceiveRequest({memory.Piece(0, kMessageBytes)})});
  EXPECT_TRUE(link.peer.Run("send " + PatternName(1, 10'000)).ok);
  EXPECT_EQ(link.queue.NextReceive().result().bytes_transferred(), 10'000u);
  EXPECT_TRUE(memory.Text(0, 10'000) == Pattern(1, 10'000));

  memory.SetText(0, Pattern(2, kMessageBytes));
  link.peer.Send("recv");
  link.queue.MustRun(SendRequest({memory.Piece(100, 5000)}));
  const PeerAnswer received = link.peer.Answer();
  EXPECT_EQ(received.number("bytes"), 5000u);
  EXPECT_EQ(received.values.at("checksum"), Checksum(Pattern(2, kMessageBytes).substr(100, 5000)));

  const RemoteBytes theirs = link.peer.memory();
  link.queue.MustRun(WriteRequest({memory.Piece(0, kMessageBytes)}, theirs.address, theirs.token));
  EXPECT_TRUE(link.peer.Holds(0, Pattern(2, kMessageBytes)));
  link.peer.Fill(0, 3, kMessageBytes);
  link.queue.MustRun(ReadRequest({memory.Piece(0, kMessageBytes)}, theirs.address, theirs.token));
  EXPECT_TRUE(memory.Text(0, kMessageBytes) == Pattern(3, kMessageBytes));
}

class LinkLocalAccess : public FaultTest {
 protected:
  LinkLocalAccess() : FaultTest(std::vector<std::string>{"--verbs_gid=link-local"}) {}
};

TEST_F(LinkLocalAccess, PeerReachesTheMemoryOfAClientWithoutPrivileges) {
  ExpectPeerReachesMemory(daemon(), {.gid = "link-local"});
}

// An access that the card must refuse.
struct Trespass {
  std::string name;
  uint32_t flags;
  std::function<PeerAnswer(ForeignPeer&, const RemoteBytes&)> attempt;
};

void PrintTo(const Trespass& trespass, std::ostream* out) { *out << trespass.name; }

class ForeignTrespass : public FaultTest, public testing::WithParamInterface<Trespass> {};

TEST_P(ForeignTrespass, IsRefusedChangesNothingAndEndsTheConnection) {
  Owner owner(daemon(), GetParam().flags);
  owner.SetText(Pattern(1, kMessageBytes));
  ForeignPeer peer;
  owner.ConnectTo(peer);
  EXPECT_EQ(GetParam().attempt(peer, owner.remote()).error, "REM_ACCESS_ERR");
  owner.client().MustRun("disconnected");
  EXPECT_EQ(peer.Run("state").values["state"], "ERR");
  EXPECT_TRUE(owner.Text() == Pattern(1, kMessageBytes));
}

constexpr uint32_t kReadOnly = v1::MR_FLAG_ALLOW_REMOTE_READ;
constexpr uint32_t kWriteOnly = v1::MR_FLAG_ALLOW_REMOTE_WRITE;

INSTANTIATE_TEST_SUITE_P(
    Access, ForeignTrespass,
    testing::Values(Trespass{"TokenOfNobody", kEveryRight,
                             [](ForeignPeer& peer, const RemoteBytes& remote) {
                               return peer.Write({.address = remote.address, .token = remote.token ^ 0x10000}, 2, 64);
                             }},
                    Trespass{"TokenWithAnotherLastByte", kEveryRight,
                             [](ForeignPeer& peer, const RemoteBytes& remote) {
                               return peer.Write({.address = remote.address, .token = remote.token ^ 1}, 2, 64);
                             }},
                    Trespass{"OneByteBeyondTheEnd", kEveryRight,
                             [](ForeignPeer& peer, const RemoteBytes& remote) {
                               return peer.Write(remote + (kMessageBytes - 63), 2, 64);
                             }},
                    Trespass{"OneByteBeforeTheBeginning", kEveryRight,
                             [](ForeignPeer& peer, const RemoteBytes& remote) {
                               return peer.Write({.address = remote.address - 1, .token = remote.token}, 2, 64);
                             }},
                    Trespass{"ReadOneByteBeyondTheEnd", kEveryRight,
                             [](ForeignPeer& peer, const RemoteBytes& remote) {
                               return peer.Read(remote + (kMessageBytes - 63), 64);
                             }},
                    Trespass{"WriteIntoReadOnly", kReadOnly,
                             [](ForeignPeer& peer, const RemoteBytes& remote) { return peer.Write(remote, 2, 64); }},
                    Trespass{"ReadFromWriteOnly", kWriteOnly,
                             [](ForeignPeer& peer, const RemoteBytes& remote) { return peer.Read(remote, 64); }}),
    [](const auto& trespass) { return trespass.param.name; });

}  // namespace
}  // namespace rnicd::test
