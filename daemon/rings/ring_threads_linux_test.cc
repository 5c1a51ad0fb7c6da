#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "daemon/rings/ring_fixture_test.h"
#include "ring/processor.h"

namespace rnicd::rings {
namespace {

// The calling thread, and those that it starts, have one processor while this exists.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;
  ~OneProcessor() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_ = {};
};

TEST(RingsOnOneProcessor, ABusyThreadGivesWayToItsClients) {
  const OneProcessor pinned;
  std::atomic<uint64_t> yields{0};
  RingWorld world({}, {}, [&yields] {
    yields.fetch_add(1);
    std::this_thread::yield();
  });
  core::QueueOwner owner{world};
  RingClient first(*owner.session);
  RingClient second(*owner.session);
  for (RingClient* const client : {&first, &second}) {
    client->end->SetCpu(ring::CurrentCpu());
  }
  EXPECT_TRUE(Eventually([&] {
    for (RingClient* const client : {&first, &second}) {
      while (client->end->Poll().has_value()) {
      }
      while (client->end->Reserve(0).has_value()) {
        client->Submit({});
      }
    }
    return yields.load() > 0;
  }));
}

TEST_F(RingTest, AnOutcomeIsAnnouncedInThePipe) {
  ASSERT_FALSE(client_.end->PrepareToWait());
  client_.Submit({});
  pollfd readable{.fd = client_.pipe.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&readable, 1, 20'000), 1);
  EXPECT_TRUE(client_.end->Poll().has_value());
}

TEST_F(RingTest, AHoleInItsFileCostsOnlyTheClient) {
  const auto again = owner_.session->Begin()->rings().Duplicate(client_.id, core::SharedDescriptor::kMemory);
  ASSERT_EQ(ftruncate(again->get(), 0), -1);
  ASSERT_EQ(
      fallocate(again->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(client_.file.size())),
      0);
  RingClient another(*owner_.session);
  another.Submit({});
  EXPECT_EQ(another.Next().status, 0U);
  client_.Submit({});
  client_.RingDoorbell();
  EXPECT_TRUE(Eventually([&] { return world_.Counts().entries == 2; }));
}

}  // namespace
}  // namespace rnicd::rings
