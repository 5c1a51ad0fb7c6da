// Fast registrations by the kernel's module, and a peer without rnicd. For a guest with the module loaded.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/wait.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

class KernelEngine : public FaultTest {
 protected:
  KernelEngine() : FaultTest({"--verbs_fast_engine=kernel"}) {}

  // Posts a registration of these pages, behind what is queued.
  static RemoteBytes Post(TestQueue& queue, uint64_t mr_id, const std::vector<uint64_t>& pages) {
    const v1::PostResponse posted =
        queue.MustPost({FastRegisterRequest(mr_id, pages, pages.size() * kPage, kFastBase, kRemoteRights)});
    EXPECT_EQ(posted.issued_tokens_size(), 1);
    return {.address = kFastBase,
            .token = posted.issued_tokens_size() == 1 ? posted.issued_tokens(0).remote_token() : 0};
  }
  static RemoteBytes Register(TestQueue& queue, uint64_t mr_id, const std::vector<uint64_t>& pages) {
    const RemoteBytes remote = Post(queue, mr_id, pages);
    EXPECT_EQ(queue.NextInitiator().result().ntstatus(), kStatusSuccess);
    return remote;
  }
};

TEST_F(KernelEngine, AForeignPeerInvalidatesAndTheOwnerHearsOfIt) {
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  ForeignLink link(session);
  const uint64_t mr_id = FastRegion(session, 16);
  const RemoteBytes remote = Register(link.queue, mr_id, memory.LogicalPages());
  link.peer.MustWrite(remote, 1, 64);
  link.queue.MustPost({ReceiveRequest({}, 7)});
  EXPECT_TRUE(link.peer.Run("invalidate " + std::to_string(remote.token)).ok);
  const v1::CqResultEx received = link.queue.NextReceive();
  EXPECT_EQ(received.result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(received.type(), v1::OPERATION_TYPE_RECEIVE_AND_INVALIDATE);
  EXPECT_EQ(received.type_specific_completion_output(), remote.token);
  // The region is free again at once, and the old token dead.
  const RemoteBytes again = Register(link.queue, mr_id, memory.LogicalPages());
  link.peer.MustWrite(again, 2, 64);
  EXPECT_EQ(link.peer.Write(remote, 3, 64).error, "REM_ACCESS_ERR");
}

// Pieces of huge pages cannot be mapped a second time; the kernel needs no such mapping.
TEST_F(KernelEngine, ScatteredPiecesOfHugePagesAreRegistered) {
  TestSession session(daemon());
  OwnMemory memory(session, kHugePage, v1::PAGE_SIZE_2MIB);
  const std::vector<uint64_t> all = memory.LogicalPages();
  ForeignLink link(session);
  const uint64_t mr_id = FastRegion(session, 2);
  const RemoteBytes remote = Register(link.queue, mr_id, {all[300], all[7]});
  link.peer.MustWrite(remote + (kPage - 50), 1, 100);
  EXPECT_EQ(memory.Text(301 * kPage - 50, 50), Pattern(1, 100).substr(0, 50));
  EXPECT_EQ(memory.Text(7 * kPage, 50), Pattern(1, 100).substr(50));
}

TEST_F(KernelEngine, AnEndedSessionsRegistrationsAreGone) {
  RemoteBytes remote;
  ForeignPeer peer;
  {
    TestSession session(daemon());
    OwnMemory memory(session, kMessageBytes);
    TestQueue queue(session);
    EXPECT_TRUE(Connect(queue, peer.address()).ok());
    EXPECT_TRUE(peer.Connect(queue.Query().address()));
    remote = Register(queue, FastRegion(session, 16), memory.LogicalPages());
    peer.MustWrite(remote, 1, 64);
  }
  EXPECT_TRUE(Eventually([&] { return AdminSessions(daemon()).empty(); }));
  EXPECT_FALSE(peer.Write(remote, 2, 64).ok);
}

TEST_F(KernelEngine, AKilledDaemonLeavesNothing) {
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  ForeignLink link(session);
  link.peer.MustWrite(Register(link.queue, FastRegion(session, 16), memory.LogicalPages()), 1, 64);
  KillDaemon();
  Restart();
}

}  // namespace
}  // namespace rnicd::test
