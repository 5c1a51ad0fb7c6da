// Links that go down, addresses that are removed and added again, and lost packets.
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/calls/expect.h"
#include "tests/support/process/wait.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"
#include "tests/vm/faults/network.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kAccessViolation = static_cast<uint32_t>(NtStatus::kAccessViolation);
constexpr uint32_t kIoTimeout = static_cast<uint32_t>(NtStatus::kIoTimeout);

class Links : public FaultTest, public testing::WithParamInterface<const char*> {
 protected:
  bool Logs(const std::string& event) {
    return daemon().process().errors().WaitFor("event=\"" + event + "\"", kTimeout);
  }
};

TEST_P(Links, DownEndsConnectionsAndUpServesNewOnes) {
  TestSession session(daemon());
  EventReader events(session);
  OwnMemory memory(session, kMessageBytes);
  const RemoteBytes ours = memory.Register();
  ForeignLink link(session);
  const RemoteBytes theirs = link.peer.memory();
  link.peer.BeginTraffic(ours, 4096);
  ASSERT_TRUE(Eventually([&] { return memory.Counter() > 0; })) << "the peer does not write";
  LinkDown down(GetParam());
  const auto status =
      ExpectConnectionEnds(link.queue, WriteRequest({memory.Piece(4096, 4096)}, theirs.address, theirs.token));
  EXPECT_NE(status, kAccessViolation) << "the owner is blamed for the wire";
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
  EXPECT_TRUE(Logs("port down")) << daemon().log();
  const PeerAnswer traffic = link.peer.Answer();
  EXPECT_FALSE(traffic.ok);
  EXPECT_GT(traffic.number("writes"), 0u);

  // Registration does not depend on the link.
  OwnMemory other(session, kMessageBytes);
  const RemoteBytes others = other.Register();
  ExpectOk(session.Deregister(memory.mr_id()));

  down.Undo();
  EXPECT_TRUE(Logs("port up")) << daemon().log();
  ForeignLink again(session);
  again.peer.MustWrite(others, 5, kMessageBytes);
  EXPECT_TRUE(other.Text(0, kMessageBytes) == Pattern(5, kMessageBytes));
  again.Greet();
}

INSTANTIATE_TEST_SUITE_P(End, Links, testing::Values("va", "vb"), [](const auto& end) { return end.param; });

class Addresses : public FaultTest {
 protected:
  Addresses() : FaultTest(std::vector<std::string>{std::string("--verbs_gid=") + kNearAddress}) {}
};

// GID table slots are reassigned: a daemon that caches a slot's number would send from another address.
TEST_F(Addresses, AreFoundByContentWhereverTheyStand) {
  TestSession session(daemon());
  const int slot = SlotOfNearAddress();
  TestQueue queue(session);
  const AddressMoved moved;
  ASSERT_NE(SlotOfNearAddress(), slot) << "the address stands where it stood, which shows nothing";
  ForeignPeer peer;
  ExpectOk(Connect(queue, peer.address()));
  peer.Connect(queue.Query().address());
  const RemoteBytes theirs = peer.memory();
  queue.MustRun(InlineWriteRequest("moved", theirs.address, theirs.token));
  EXPECT_TRUE(peer.Holds(0, "moved"));
  ForeignLink link(session);
  link.Greet();
}

TEST_F(Addresses, WithoutOneNothingConnectsUntilItIsBack) {
  TestSession session(daemon());
  TestQueue queue(session);
  ForeignPeer peer;
  {
    const AddressGone gone;
    ASSERT_TRUE(Eventually([] { return SlotOfNearAddress() < 0; }));
    EXPECT_FALSE(Connect(queue, peer.address()).ok());
    EXPECT_TRUE(daemon().process().errors().WaitFor("address changed", kTimeout)) << daemon().log();
  }
  ForeignLink link(session);
  link.Greet();
  ExpectOk(Connect(queue, peer.address()));
  peer.Connect(queue.Query().address());
  queue.MustRun(WriteRequest({}, 0, 0));
}

class Silence : public FaultTest {};

// The near card's, by the kernel's count.
uint64_t PacketsReceived() {
  uint64_t count = 0;
  std::ifstream("/sys/class/infiniband/" + AdapterUnderTest() + "/ports/1/hw_counters/rcvd_pkts") >> count;
  return count;
}

TEST_F(Silence, IdleConnectionIsProbedAndFoundDead) {
  TestSession session(daemon());
  EventReader events(session);
  ForeignLink link(session);
  link.Greet();
  const Disturbance loss("vb", "loss 100%");
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
  EXPECT_EQ(link.queue.Query().state(), v1::QP_STATE_ERROR);
}

TEST_F(Silence, IdleConnectionThatAnswersIsLeftAlone) {
  TestSession session(daemon());
  ForeignLink link(session);
  link.Greet();
  // Three probes are acknowledged; nothing else travels.
  const uint64_t before = PacketsReceived();
  EXPECT_TRUE(Eventually([&] { return PacketsReceived() >= before + 3; }));
  EXPECT_EQ(link.queue.Query().state(), v1::QP_STATE_READY_TO_SEND);
  link.Greet();
}

// No health probe may run before the request.
class SilenceWithoutProbes : public FaultTest {
 protected:
  SilenceWithoutProbes() : FaultTest(std::vector<std::string>{"--verbs_probe_interval_ms=3600000"}) {}
};

TEST_F(SilenceWithoutProbes, RequestsEndWithATimeout) {
  TestSession session(daemon());
  EventReader events(session);
  ForeignLink link(session);
  link.Greet();
  const RemoteBytes theirs = link.peer.memory();
  const Disturbance loss("vb", "loss 100%");
  link.queue.MustPost({InlineWriteRequest("lost", theirs.address, theirs.token, 1),
                       InlineWriteRequest("behind it", theirs.address, theirs.token, 2)});
  const v1::CqResultEx first = link.queue.NextInitiator();
  EXPECT_EQ(first.result().ntstatus(), kIoTimeout);
  EXPECT_EQ(first.result().request_context(), 1u);
  EXPECT_EQ(link.queue.NextInitiator().result().ntstatus(), static_cast<uint32_t>(NtStatus::kCancelled));
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
}

TEST_F(SilenceWithoutProbes, LostPacketsAreSentAgain) {
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  const RemoteBytes ours = memory.Register();
  ForeignLink link(session);
  {
    const Disturbance loss("vb", "loss 10%");
    for (uint32_t seed = 1; seed <= 10; ++seed) {
      link.peer.MustWrite(ours, seed, 4096);
      EXPECT_TRUE(memory.Text(0, 4096) == Pattern(seed, 4096)) << seed;
    }
  }
  link.Greet();
}

class Fences : public FaultTest {};

// Reads the peer's bytes into a sink and writes the sink back to another address, in one chain. True if the written
// bytes equal the read ones.
bool WritesWhatItRead(ForeignLink& link, OwnMemory& sink, const RemoteBytes& theirs, uint32_t seed, uint32_t flags) {
  constexpr uint32_t kBytes = 16 * 1024;
  link.peer.Fill(0, seed, kBytes);
  link.queue.MustPost({ReadRequest({sink.Piece(0, kBytes)}, theirs.address, theirs.token, 0, 1),
                       WriteRequest({sink.Piece(0, kBytes)}, theirs.address + 2 * kBytes, theirs.token, flags, 2)});
  for (int request = 0; request < 2; ++request) {
    EXPECT_EQ(link.queue.NextInitiator().result().ntstatus(), kStatusSuccess);
  }
  EXPECT_TRUE(sink.Text(0, kBytes) == Pattern(seed, kBytes));
  return link.peer.Holds(uint64_t{2} * kBytes, Pattern(seed, kBytes));
}

TEST_F(Fences, OnlyAFencedWriteWaitsForTheReadBeforeIt) {
  constexpr uint32_t kTries = 20;
  TestSession session(daemon());
  OwnMemory sink(session, kMessageBytes);
  sink.Register();
  ForeignLink link(session);
  const RemoteBytes theirs = link.peer.memory();
  // The peer's packets are delayed, so that the read is in flight when the card starts the write.
  const Disturbance delay("vb", "delay 5ms");
  uint32_t stale = 0;
  uint32_t stale_behind_fence = 0;
  for (uint32_t seed = 1; seed <= 2 * kTries; seed += 2) {
    stale += WritesWhatItRead(link, sink, theirs, seed, 0) ? 0 : 1;
    stale_behind_fence += WritesWhatItRead(link, sink, theirs, seed + 1, v1::OP_FLAG_READ_FENCE) ? 0 : 1;
  }
  EXPECT_GE(stale, 1u) << "the wire was never slow enough to show what a fence is for";
  EXPECT_EQ(stale_behind_fence, 0u);
  RecordProperty("stale_without_fence", static_cast<int>(stale));
}

}  // namespace
}  // namespace rnicd::test
