#include "daemon/gate/delayed_responses.h"

#include "daemon/core/core_fixture_test.h"

namespace rnicd::gate {
namespace {

using core::Awaited;
using core::Eventually;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST(DelayedResponses, AResponseIsNotEarly) {
  DelayedResponses responses;
  Awaited<Instant> responded;
  const Instant begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(responses.Add(milliseconds(20), [&] { responded.Set(std::chrono::steady_clock::now()); }));
  const std::optional<Instant> when = responded.Get();
  ASSERT_TRUE(when.has_value());
  EXPECT_GE(*when - begin, milliseconds(20));
}

TEST(DelayedResponses, TheFirstDueIsTheFirstSent) {
  Mutex mutex;
  std::string order;
  Awaited<bool> last;
  DelayedResponses responses;
  const auto add = [&](milliseconds delay, char name) {
    responses.Add(delay, [&, name] {
      MutexLock lock(mutex);
      order += name;
      if (name == 'c') {
        last.Set(true);
      }
    });
  };
  add(milliseconds(60), 'c');
  add(milliseconds(1), 'a');
  add(milliseconds(30), 'b');
  ASSERT_TRUE(last.Get().has_value());
  MutexLock lock(mutex);
  EXPECT_EQ(order, "abc");
}

TEST(DelayedResponses, AResponseNeverRunsInsideAdd) {
  DelayedResponses responses;
  Awaited<std::thread::id> thread;
  EXPECT_TRUE(responses.Add(milliseconds(0), [&] { thread.Set(std::this_thread::get_id()); }));
  ASSERT_TRUE(thread.Get().has_value());
  EXPECT_NE(*thread.Get(), std::this_thread::get_id());
}

TEST(DelayedResponses, TheDestructorSendsTheRestAtOnce) {
  int sent = 0;
  {
    DelayedResponses responses;
    for (int response = 0; response < 10; ++response) {
      EXPECT_TRUE(responses.Add(hours(1), [&sent] { ++sent; }));
    }
  }
  EXPECT_EQ(sent, 10);
}

TEST(DelayedResponses, WithoutRoomTheCallerMustRespond) {
  int sent = 0;
  {
    DelayedResponses responses(2);
    EXPECT_TRUE(responses.Add(hours(1), [&sent] { ++sent; }));
    EXPECT_TRUE(responses.Add(hours(1), [&sent] { ++sent; }));
    EXPECT_FALSE(responses.Add(hours(1), [&sent] { sent += 100; }));
  }
  EXPECT_EQ(sent, 2);
}

TEST(DelayedResponses, ThePlaceOfASentResponseIsFreeAgain) {
  DelayedResponses responses(1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Eventually([&] { return responses.Add(milliseconds(0), [] {}); }));
  }
}

TEST(DelayedResponses, ManyThreadsMayAdd) {
  constexpr int kThreads = 8;
  constexpr int kResponses = 500;
  std::atomic<int> sent = 0;
  {
    DelayedResponses responses;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (int response = 0; response < kResponses; ++response) {
          if (!responses.Add(std::chrono::microseconds(response), [&sent] { ++sent; })) {
            ++sent;
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  EXPECT_EQ(sent.load(), kThreads * kResponses);
}

}  // namespace
}  // namespace rnicd::gate
