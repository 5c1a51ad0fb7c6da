#include "daemon/gate/late_answers.h"

#include "daemon/core/core_fixture_test.h"

namespace rnicd::gate {
namespace {

using core::Awaited;
using core::Eventually;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST(LateAnswers, AnAnswerIsNotEarly) {
  LateAnswers answers;
  Awaited<Instant> answered;
  const Instant begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(answers.Add(milliseconds(20), [&] { answered.Bring(std::chrono::steady_clock::now()); }));
  const std::optional<Instant> when = answered.Get();
  ASSERT_TRUE(when.has_value());
  EXPECT_GE(*when - begin, milliseconds(20));
}

TEST(LateAnswers, TheFirstDueIsTheFirstGiven) {
  Mutex mutex;
  std::string order;
  Awaited<bool> last;
  LateAnswers answers;
  const auto add = [&](milliseconds delay, char name) {
    answers.Add(delay, [&, name] {
      MutexLock lock(mutex);
      order += name;
      if (name == 'c') {
        last.Bring(true);
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

TEST(LateAnswers, AnAnswerNeverRunsInsideAdd) {
  LateAnswers answers;
  Awaited<std::thread::id> thread;
  EXPECT_TRUE(answers.Add(milliseconds(0), [&] { thread.Bring(std::this_thread::get_id()); }));
  ASSERT_TRUE(thread.Get().has_value());
  EXPECT_NE(*thread.Get(), std::this_thread::get_id());
}

TEST(LateAnswers, TheEndGivesWhatIsLeftAtOnce) {
  int given = 0;
  {
    LateAnswers answers;
    for (int answer = 0; answer < 10; ++answer) {
      EXPECT_TRUE(answers.Add(hours(1), [&given] { ++given; }));
    }
  }
  EXPECT_EQ(given, 10);
}

TEST(LateAnswers, WhatFindsNoRoomIsLeftToTheCaller) {
  int given = 0;
  {
    LateAnswers answers(2);
    EXPECT_TRUE(answers.Add(hours(1), [&given] { ++given; }));
    EXPECT_TRUE(answers.Add(hours(1), [&given] { ++given; }));
    EXPECT_FALSE(answers.Add(hours(1), [&given] { given += 100; }));
  }
  EXPECT_EQ(given, 2);
}

TEST(LateAnswers, ThePlaceOfAGivenAnswerIsFreeAgain) {
  LateAnswers answers(1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Eventually([&] { return answers.Add(milliseconds(0), [] {}); }));
  }
}

TEST(LateAnswers, ManyThreadsMayAdd) {
  constexpr int kThreads = 8;
  constexpr int kAnswers = 500;
  std::atomic<int> given = 0;
  {
    LateAnswers answers;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (int answer = 0; answer < kAnswers; ++answer) {
          if (!answers.Add(std::chrono::microseconds(answer), [&given] { ++given; })) {
            ++given;
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  EXPECT_EQ(given.load(), kThreads * kAnswers);
}

}  // namespace
}  // namespace rnicd::gate
