#include "daemon/rpc/socket/event_loop.h"

#include <gtest/gtest.h>

#include "daemon/rpc/server_fixture_test.h"

namespace rnicd::rpc {
namespace {

using std::chrono::milliseconds;

class EventLoopTest : public testing::Test {
 protected:
  struct Ends {
    UniqueSocket watched;
    UniqueSocket other;
  };
  static Ends MakeEnds() {
    auto [watched, other] = MakeSocketPair();
    return {.watched = std::move(watched), .other = std::move(other)};
  }
  // A socket with a byte to read.
  static Ends MakeReadableEnds() {
    Ends ends = MakeEnds();
    EXPECT_EQ(SendSocket(ends.other.get(), "x"), 1);
    EXPECT_TRUE(WaitForSocket(ends.watched.get(), kReadable, kTimeout));
    return ends;
  }
  void Run(const EventLoop::Task& task) { RunOn(*loop_, task); }

  const SteadyClock clock_;
  const std::shared_ptr<EventLoop> loop_ = *EventLoop::Start(clock_);
};

TEST_F(EventLoopTest, RunsTasksOfAThreadInTheirOrderOnItsOwnThread) {
  std::vector<int> ran;
  bool on_thread = true;
  for (int index = 0; index < 1000; ++index) {
    loop_->Post([&, index] {
      ran.push_back(index);
      on_thread = on_thread && loop_->OnThread();
    });
  }
  Run([] {});
  EXPECT_EQ(ran.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
  EXPECT_TRUE(on_thread);
  EXPECT_FALSE(loop_->OnThread());
}

TEST_F(EventLoopTest, StopRunsWhatWasPostedAndWhatThatPosts) {
  int ran = 0;
  loop_->Post([&] {
    ++ran;
    loop_->Post([&] { ++ran; });
  });
  loop_->Stop();
  EXPECT_EQ(ran, 2);
}

// A task may keep what keeps the loop.
TEST_F(EventLoopTest, WhatIsPostedAfterStopIsDestroyedAtOnce) {
  loop_->Stop();
  const auto kept = std::make_shared<int>();
  loop_->Post([kept] { FAIL(); });
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(EventLoopTest, ThreadsMayPostAndAskWhileItStops) {
  std::vector<std::thread> threads;
  for (int count = 0; count < 3; ++count) {
    threads.emplace_back([this] {
      for (int round = 0; round < 1000; ++round) {
        loop_->Post([] {});
        EXPECT_FALSE(loop_->OnThread());
      }
    });
  }
  loop_->Stop();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(EventLoopTest, TimersFireInTheOrderOfTheirTimes) {
  std::string fired;
  Signal last;
  Run([&] {
    const Instant now = std::chrono::steady_clock::now();
    loop_->CallAt(now + milliseconds(3), [&] {
      fired += 'c';
      last.Set();
    });
    loop_->CallAt(now + milliseconds(2), [&] { fired += 'b'; });
    loop_->CallAt(now - milliseconds(1), [&] { fired += 'a'; });
    // The same time as another one's.
    loop_->CallAt(now + milliseconds(2), [&] { fired += 'B'; });
  });
  ASSERT_TRUE(last.Wait());
  EXPECT_EQ(fired, "abBc");
}

TEST_F(EventLoopTest, ATimerIsNotEarly) {
  const Instant due = std::chrono::steady_clock::now() + milliseconds(5);
  Instant fired;
  Signal done;
  loop_->Post([&] {
    loop_->CallAt(due, [&] {
      fired = std::chrono::steady_clock::now();
      done.Set();
    });
  });
  ASSERT_TRUE(done.Wait());
  EXPECT_GE(fired, due);
}

TEST_F(EventLoopTest, ACancelledTimerDoesNotFire) {
  Signal done;
  bool fired = false;
  Run([&] {
    const Instant now = std::chrono::steady_clock::now();
    const auto cancelled = loop_->CallAt(now, [&] { fired = true; });
    loop_->CancelTimer(cancelled);
    // Also when an earlier one that is due at the same turn cancels it.
    const auto key = std::make_shared<EventLoop::Timer>();
    loop_->CallAt(now, [this, key] { loop_->CancelTimer(*key); });
    *key = loop_->CallAt(now, [&] { fired = true; });
    loop_->CancelTimer({});
    loop_->CallAt(now + milliseconds(1), [&] { done.Set(); });
  });
  ASSERT_TRUE(done.Wait());
  EXPECT_FALSE(fired);
}

TEST_F(EventLoopTest, CallsForADescriptorUntilItIsForgotten) {
  const Ends ends = MakeReadableEnds();
  int calls = 0;
  Signal third;
  EventLoop::Key key = 0;
  Run([&] {
    key = loop_->Watch(ends.watched.get(), kReadable, [&](uint32_t events) {
      EXPECT_EQ(events, kReadable);
      if (++calls == 3) {
        loop_->Forget(key);
        third.Set();
      }
    });
    EXPECT_NE(key, 0u);
  });
  ASSERT_TRUE(third.Wait());
  Run([] {});
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, ChangeSaysWhatIsWaitedFor) {
  const Ends ends = MakeEnds();
  Signal writable;
  Run([&] {
    const auto key = loop_->Watch(ends.watched.get(), kReadable, [&](uint32_t events) {
      EXPECT_EQ(events, kWritable);
      loop_->Change(0, 0);  // Names none.
      writable.Set();
    });
    loop_->Change(key, kWritable);
  });
  ASSERT_TRUE(writable.Wait());
  loop_->Stop();
}

// Both are ready in one turn; the first to run forgets the other, as an end of one connection may end another.
TEST_F(EventLoopTest, WhatWasForgottenInATurnIsNotCalledInIt) {
  const Ends first = MakeReadableEnds();
  const Ends second = MakeReadableEnds();
  int calls = 0;
  Run([&] {
    const auto keys = std::make_shared<std::array<EventLoop::Key, 2>>();
    const auto forget_both = [&calls, keys, this](uint32_t) {
      ++calls;
      loop_->Forget((*keys)[0]);
      loop_->Forget((*keys)[1]);
    };
    *keys = {loop_->Watch(first.watched.get(), kReadable, forget_both),
             loop_->Watch(second.watched.get(), kReadable, forget_both)};
  });
  // Its turn is after theirs.
  Run([] {});
  Run([] {});
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, WhatTheKernelRefusesHasNoKey) {
  Run([&] {
    EXPECT_EQ(loop_->Watch(-1, kReadable, [](uint32_t) {}), 0u);
    loop_->Forget(0);
  });
}

}  // namespace
}  // namespace rnicd::rpc
