// Processes that die without closing anything: the peer, the client, the daemon.
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

class Deaths : public FaultTest {};

TEST_F(Deaths, OfAnIdlePeerIsNoticed) {
  TestSession session(daemon());
  EventReader events(session);
  ForeignLink link(session);
  link.Greet();
  link.peer.KillHard();
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
}

TEST_F(Deaths, OfABusyPeerEndsRequests) {
  TestSession session(daemon());
  EventReader events(session);
  OwnMemory memory(session, kMessageBytes);
  memory.Register();
  ForeignLink link(session);
  const RemoteBytes theirs = link.peer.memory();
  const v1::WorkRequest write = WriteRequest({memory.Piece(0, 4096)}, theirs.address, theirs.token);
  link.queue.MustRun(write);
  link.peer.process().Signal(SIGKILL);
  ExpectConnectionEnds(link.queue, write);
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
}

TEST_F(Deaths, OfAPeerInTheMiddleOfItsWritesIsNoticed) {
  TestSession session(daemon());
  EventReader events(session);
  OwnMemory memory(session, kMessageBytes);
  const RemoteBytes ours = memory.Register();
  ForeignLink link(session);
  link.Greet();
  link.peer.BeginTraffic(ours, 4096);
  ASSERT_TRUE(Eventually([&] { return memory.Counter() > 0; })) << "the peer does not write";
  link.peer.KillHard();
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
}

// A client with a thousand registrations, and a peer that keeps writing into one of them.
struct BusyClient {
  explicit BusyClient(const DaemonProcess& daemon) : client(ChildClient::Start(daemon, WorkloadUid())) {
    client->MustRun("open busy");
    const std::string size = std::to_string(kMessageBytes);
    const std::string memory_id = client->MustRun("alloc " + size).values["memory"];
    const std::string range = memory_id + " " + size + " " + std::to_string(kEveryRight);
    const ChildAnswer region = client->MustRun("register " + range);
    EXPECT_EQ(client->MustRun("regions " + range + " 1000").number("regions"), 1000u);
    const std::string address = BytesFromHex(client->MustRun("qp").values["address"]).value();
    client->MustRun("peer " + absl::BytesToHexString(peer.address()));
    peer.Connect(address);
    peer.BeginTraffic({.address = region.number("base"), .token = static_cast<uint32_t>(region.number("remote"))},
                      4096);
    EXPECT_TRUE(Eventually([&] { return client->MustRun("peek 0 8").values["bytes"] != std::string(16, '0'); }))
        << "the peer does not write";
  }

  const std::unique_ptr<ChildClient> client;
  ForeignPeer peer;
};

TEST_F(Deaths, OfAClientWithAThousandRegistrationsAndTrafficLeavesNothing) {
  TestSession other(daemon());
  OwnMemory memory(other, kMessageBytes);
  const RemoteBytes ours = memory.Register();
  ForeignLink link(other);
  const KernelObjects before = Objects();
  BusyClient busy(daemon());
  const KernelObjects with_client = Objects();
  EXPECT_GE(with_client.at("mr"), before.at("mr") + 1001) << Describe(with_client);
  busy.client->KillHard();
  uint32_t seed = 0;
  EXPECT_TRUE(Eventually([&] {
    // Other clients are served meanwhile.
    link.peer.MustWrite(ours, ++seed, 4096);
    EXPECT_TRUE(memory.Text(0, 4096) == Pattern(seed, 4096));
    OwnMemory fresh(other, kPage);
    fresh.Register();
    ExpectOk(other.CloseMr(fresh.mr_id()));
    ExpectOk(other.Release(fresh.id()));
    return Objects() == before;
  })) << "the kernel still holds of the dead client: "
      << Describe(Objects());
  EXPECT_EQ(AdminStatus(daemon()).registered_pages(), kMessageBytes / kPage);
  const PeerAnswer traffic = busy.peer.Answer();
  EXPECT_FALSE(traffic.ok) << "a peer still reaches the memory of a dead client";
  EXPECT_GT(traffic.number("writes"), 0u);
}

TEST_F(Deaths, OfTheDaemonLeaveNothingInTheKernelAndANewOneServes) {
  BusyClient busy(daemon());
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  memory.Register();
  ForeignLink link(session);
  link.Greet();
  KillDaemon();
  EXPECT_FALSE(busy.peer.Answer().ok) << "a peer still reaches memory that is no longer registered";
  EXPECT_FALSE(link.peer.Write(RemoteBytes{.address = kBase, .token = 1}, 1, 64).ok);
  Restart();
  TestSession next(daemon());
  OwnMemory fresh(next, kMessageBytes);
  const RemoteBytes ours = fresh.Register();
  ForeignLink again(next);
  again.peer.MustWrite(ours, 3, kMessageBytes);
  EXPECT_TRUE(fresh.Text(0, kMessageBytes) == Pattern(3, kMessageBytes));
}

}  // namespace
}  // namespace rnicd::test
