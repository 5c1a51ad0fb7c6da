#include "provider/verbs/card/event_loop.h"

#include <sys/eventfd.h>

#include <cstdlib>
#include <thread>

#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

// A descriptor that can be signalled, and a record of its callbacks.
class Bell final : public EventLoop::Handler {
 public:
  Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  int descriptor() const { return descriptor_.get(); }
  void Ring() const {
    const uint64_t one = 1;
    EXPECT_EQ(write(descriptor(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  bool OnReadable(int descriptor) override {
    EXPECT_EQ(descriptor, descriptor_.get());
    thread_ = std::this_thread::get_id();
    uint64_t count = 0;
    // A call that was meant for an earlier owner of the same number finds nothing.
    if (!silences_ || read(descriptor, &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count))) {
      ++rung_;
    }
    return goes_on_;
  }
  void OnTick() override { ++ticks_; }

  int rung() const { return rung_; }
  int ticks() const { return ticks_; }
  std::thread::id thread() const { return thread_; }

  std::atomic<bool> silences_ = true;
  std::atomic<bool> goes_on_ = true;

 private:
  const UniqueFd descriptor_;
  std::atomic<int> rung_ = 0;
  std::atomic<int> ticks_ = 0;
  std::atomic<std::thread::id> thread_;
};

TEST(EventLoop, CallsWhoeverStandsBehindADescriptorOnOneThreadOfItsOwn) {
  EventLoop loop;
  const auto first = std::make_shared<Bell>();
  const auto second = std::make_shared<Bell>();
  loop.Add(first->descriptor(), first);
  loop.Add(second->descriptor(), second);
  first->Ring();
  second->Ring();
  EXPECT_TRUE(Eventually([&] { return first->rung() == 1 && second->rung() == 1; }));
  EXPECT_EQ(first->thread(), second->thread());
  EXPECT_NE(first->thread(), std::this_thread::get_id());
}

TEST(EventLoop, TicksOnceForAHandlerOfSeveralDescriptors) {
  EventLoop loop;
  const auto one = std::make_shared<Bell>();
  const auto two = std::make_shared<Bell>();
  const Bell more;
  const auto begun = std::chrono::steady_clock::now();
  loop.Add(one->descriptor(), one);
  loop.Add(two->descriptor(), two);
  loop.Add(more.descriptor(), two);
  EXPECT_TRUE(Eventually([&] { return one->ticks() >= 8 && two->ticks() >= 8; }));
  // Far from twice as many, though the loop may tick while they are added and while they are read.
  EXPECT_LE(std::abs(one->ticks() - two->ticks()), 3);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 2 * EventLoop::kTick);
}

TEST(EventLoop, ADescriptorThatHasNothingMoreToSayIsLeftAlone) {
  EventLoop loop;
  const auto silent = std::make_shared<Bell>();
  const auto clock = std::make_shared<Bell>();
  silent->silences_ = false;
  silent->goes_on_ = false;
  loop.Add(silent->descriptor(), silent);
  silent->Ring();
  loop.Add(clock->descriptor(), clock);
  EXPECT_TRUE(Eventually([&] { return clock->ticks() >= 2; }));
  EXPECT_EQ(silent->rung(), 1);
}

TEST(EventLoop, WhoWasRemovedOrIsGoneIsNotCalled) {
  EventLoop loop;
  const auto removed = std::make_shared<Bell>();
  auto gone = std::make_shared<Bell>();
  const auto clock = std::make_shared<Bell>();
  const std::weak_ptr<Bell> weak = gone;
  loop.Add(removed->descriptor(), removed);
  loop.Add(gone->descriptor(), gone);
  loop.Add(clock->descriptor(), clock);
  loop.Remove(removed->descriptor());
  removed->Ring();
  gone.reset();
  EXPECT_TRUE(Eventually([&] { return clock->ticks() >= 2; }));
  EXPECT_EQ(removed->rung(), 0);
  EXPECT_TRUE(weak.expired()) << "the loop keeps nobody";
}

TEST(EventLoop, NobodyIsCalledAfterStop) {
  const auto bell = std::make_shared<Bell>();
  EventLoop loop;
  loop.Add(bell->descriptor(), bell);
  loop.Stop();
  bell->Ring();
  loop.Add(bell->descriptor(), bell);
  EXPECT_EQ(bell->rung(), 0);
  loop.Stop();
}

TEST(EventLoop, MayBeUsedFromManyThreads) {
  EventLoop loop;
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&loop] {
      for (int round = 0; round < 100; ++round) {
        const auto bell = std::make_shared<Bell>();
        loop.Add(bell->descriptor(), bell);
        bell->Ring();
        EXPECT_TRUE(Eventually([&] { return bell->rung() > 0; }));
        loop.Remove(bell->descriptor());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace rnicd::provider
