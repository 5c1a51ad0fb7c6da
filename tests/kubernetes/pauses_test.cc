// Pauses between registrations, by a clock that the test moves.
#include <filesystem>

#include "base/manual_clock_fake.h"
#include "client/kubernetes/kubelet/file_identity.h"
#include "client/kubernetes/kubelet/resource_link.h"
#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

using kubernetes::ResourceLink;
using std::chrono::milliseconds;

class Pauses : public LinkTest {
 protected:
  Pauses() { board_.Set(Devices(4)); }

  ResourceLink LinkOf(const kubernetes::DeviceBoard& board) {
    return ResourceLink({.options = options_,
                         .allocator = allocator_,
                         .clock = clock_,
                         .logger = logger_,
                         .registrar = registrar_,
                         .wake = [] {}},
                        {.name = kMemory, .board = &board});
  }
  // Returns the time until the next poll.
  milliseconds Poll(ResourceLink& link) {
    const Instant next = link.Poll(kubernetes::IdentityOf(folder_ + "/kubelet.sock"));
    return std::chrono::duration_cast<milliseconds>(next - clock_.Now());
  }
  static bool IsUp(const ResourceLink& link) {
    return Eventually([&] { return link.up(); });
  }

  ManualClock clock_;
  const log::Logger logger_{{.level = log::Level::kWarning}};
  FakeAllocator allocator_;
  kubernetes::DeviceBoard board_;
  kubernetes::Registrar registrar_;
};

TEST_F(Pauses, GrowWithEachRefusalUpToTheSlowLook) {
  options_.first_retry = milliseconds(20);
  options_.poll_interval = milliseconds(150);
  kubelet_.Start();
  kubelet_.RefuseRegistrations("not today");
  ResourceLink link = LinkOf(board_);
  for (const milliseconds pause :
       {milliseconds(20), milliseconds(40), milliseconds(80), milliseconds(150), milliseconds(150)}) {
    EXPECT_EQ(Poll(link), pause);
    clock_.Advance(pause - milliseconds(1));
    EXPECT_EQ(Poll(link), milliseconds(1)) << "not yet";
    clock_.Advance(milliseconds(1));
  }
  EXPECT_EQ(kubelet_.registrations().size(), 5u);
  kubelet_.RefuseRegistrations("");
  Poll(link);
  EXPECT_TRUE(IsUp(link));
}

// A dead kubelet's socket refuses connections, and each refusal makes the pause longer.
TEST_F(Pauses, DoNotMakeANewKubeletWait) {
  kubelet_.Start();
  ResourceLink link = LinkOf(board_);
  Poll(link);
  ASSERT_TRUE(IsUp(link));
  kubelet_.Stop();
  ASSERT_TRUE(Eventually([&] { return !link.up(); }));
  for (int refusal = 0; refusal < 12; ++refusal) {
    clock_.Advance(options_.poll_interval);
    Poll(link);
  }
  clock_.Advance(options_.poll_interval);
  EXPECT_EQ(Poll(link), options_.poll_interval) << "the longest pause";
  kubelet_.Start();
  Poll(link);
  EXPECT_TRUE(IsUp(link));
}

TEST_F(Pauses, ADirectoryInTheWayIsWaitedFor) {
  kubelet_.Start();
  std::filesystem::create_directory(SocketOf("memory-64mi"));
  ResourceLink link = LinkOf(board_);
  EXPECT_EQ(Poll(link), options_.first_retry);
  EXPECT_TRUE(kubelet_.registrations().empty());
  std::filesystem::remove(SocketOf("memory-64mi"));
  clock_.Advance(options_.first_retry);
  Poll(link);
  EXPECT_TRUE(IsUp(link));
}

// The numbers of devices tell whose the kubelet knows.
TEST_F(Pauses, TwoPluginsDoNotTakeTurns) {
  kubernetes::DeviceBoard newer_board;
  newer_board.Set(Devices(5));
  kubelet_.Start();
  ResourceLink older = LinkOf(board_);
  ResourceLink newer = LinkOf(newer_board);
  Poll(older);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  Poll(newer);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 5, 5));
  Poll(older);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 5, 0)) << "the kubelet takes the end of the older's stream for the newer's";
  clock_.Advance(options_.poll_interval);
  Poll(newer);
  ASSERT_TRUE(Eventually([&] { return kubelet_.Streams(kMemory) == 0; }));
  clock_.Advance(options_.first_retry);
  Poll(newer);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 5, 5));
  for (int turn = 0; turn < 20; ++turn) {
    clock_.Advance(options_.poll_interval);
    Poll(older);
    Poll(newer);
  }
  EXPECT_EQ(Accepted(kMemory), 3u);
  EXPECT_FALSE(older.up());
  EXPECT_TRUE(newer.up());
  newer.Stop();
  ASSERT_TRUE(Eventually([&] { return kubelet_.Streams(kMemory) == 0; }));
  clock_.Advance(options_.poll_interval);
  Poll(older);
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4)) << "the replaced plugin registers again after the other has exited";
}

}  // namespace
}  // namespace rnicd::test
