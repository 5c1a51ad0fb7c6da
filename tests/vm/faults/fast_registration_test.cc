// Pages of 4 KiB and of 2 MiB that a foreign peer reaches under one token.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/calls/expect.h"
#include "tests/support/work_requests.h"
#include "tests/vm/faults/fault_fixture.h"

namespace rnicd::test {
namespace {

// Fast-registers these pages; must succeed.
RemoteBytes FastRegister(TestQueue& queue, uint64_t mr_id, const std::vector<uint64_t>& pages) {
  const v1::PostResponse posted =
      queue.MustPost({FastRegisterRequest(mr_id, pages, pages.size() * kPage, kFastBase, kRemoteRights)});
  EXPECT_EQ(queue.NextInitiator().result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(posted.issued_tokens_size(), 1);
  return {.address = kFastBase, .token = posted.issued_tokens_size() == 1 ? posted.issued_tokens(0).remote_token() : 0};
}

class ForeignFastRegistration : public FaultTest {};

TEST_F(ForeignFastRegistration, ScatteredPagesAreOneRangeUntilTheyAreInvalidated) {
  TestSession session(daemon());
  OwnMemory memory(session, kMessageBytes);
  memory.SetText(0, Pattern(1, kMessageBytes));
  std::vector<uint64_t> pages = memory.LogicalPages();
  std::ranges::reverse(pages);
  std::string reversed;
  for (size_t page = pages.size(); page-- > 0;) {
    reversed += memory.Text(page * kPage, kPage);
  }
  ForeignLink link(session);
  const uint64_t mr_id = FastRegion(session, static_cast<uint32_t>(pages.size()));
  const RemoteBytes remote = FastRegister(link.queue, mr_id, pages);
  link.peer.MustRead(remote, reversed);
  // Across the boundary of two pages that are not adjacent in memory.
  link.peer.MustWrite(remote + (kPage - 100), 2, 200);
  EXPECT_TRUE(memory.Text(kMessageBytes - 100, 100) == Pattern(2, 200).substr(0, 100));
  EXPECT_TRUE(memory.Text(kMessageBytes - 2 * kPage, 100) == Pattern(2, 200).substr(100));

  EventReader events(session);
  const std::string before = memory.Text(0, kMessageBytes);
  link.queue.MustRun(InvalidateMrRequest(mr_id));
  EXPECT_EQ(link.peer.Write(remote, 3, 64).error, "REM_ACCESS_ERR");
  EXPECT_TRUE(ReceivesDisconnect(events, link.queue.qp_id()));
  EXPECT_TRUE(memory.Text(0, kMessageBytes) == before);
  ForeignLink second(session);
  EXPECT_EQ(second.peer.Read(remote, 64).error, "REM_ACCESS_ERR");
}

class ForeignHugePages : public FaultTest {};

TEST_F(ForeignHugePages, ArriveAndAreReadOverTheirSeam) {
  TestSession session(daemon());
  OwnMemory memory(session, 2 * kHugePage, v1::PAGE_SIZE_2MIB);
  const RemoteBytes remote = memory.Register();
  ForeignLink link(session);
  const uint64_t seam = kHugePage - kMessageBytes / 2;
  link.peer.MustWrite(remote + seam, 1, kMessageBytes);
  EXPECT_TRUE(memory.Text(seam, kMessageBytes) == Pattern(1, kMessageBytes));
  const uint64_t end = 2 * kHugePage - kMessageBytes;
  memory.SetText(end, Pattern(2, kMessageBytes));
  link.peer.MustRead(remote + end, Pattern(2, kMessageBytes));
  EXPECT_EQ(link.peer.Write(remote + (end + 1), 3, kMessageBytes).error, "REM_ACCESS_ERR");
}

// The kernel cannot compose pieces of huge pages, and refuses before the request is accepted.
TEST_F(ForeignHugePages, FastRegisterInOrderButNotScattered) {
  TestSession session(daemon());
  OwnMemory memory(session, kHugePage, v1::PAGE_SIZE_2MIB);
  memory.SetText(kPage, Pattern(1, kMessageBytes));
  const std::vector<uint64_t> all = memory.LogicalPages();
  const std::vector<uint64_t> pages(all.begin() + 1, all.begin() + 1 + kMessageBytes / kPage);
  std::vector<uint64_t> scattered = pages;
  std::ranges::reverse(scattered);
  ForeignLink link(session);
  const uint64_t mr_id = FastRegion(session, static_cast<uint32_t>(pages.size()));
  link.queue.ExpectPostRefused(FastRegisterRequest(mr_id, scattered, kMessageBytes, kFastBase, kRemoteRights),
                               ErrorReason::DEVICE_NOT_CAPABLE, "");
  const RemoteBytes remote = FastRegister(link.queue, mr_id, pages);
  link.peer.MustRead(remote, Pattern(1, kMessageBytes));
}

}  // namespace
}  // namespace rnicd::test
