#include "daemon/door/connect_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/manual_clock_fake.h"

namespace rnicd::door {
namespace {

TEST(ConnectRates, EachOwnerHasItsOwn) {
  ManualClock clock;
  ConnectRates rates(clock, {.per_second = 1, .burst = 2});
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_TRUE(rates.IsTooFast("pod a"));
  EXPECT_FALSE(rates.IsTooFast("pod b"));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(rates.IsTooFast("pod a"));
  EXPECT_TRUE(rates.IsTooFast("pod a"));
}

TEST(ConnectRates, WithoutARateNobodyIsTooFast) {
  ManualClock clock;
  ConnectRates rates(clock, {});
  for (int count = 0; count < 1000; ++count) {
    EXPECT_FALSE(rates.IsTooFast("pod a"));
  }
  EXPECT_EQ(rates.size(), 0u);
}

TEST(ConnectRates, OwnersThatWereQuietAreForgotten) {
  ManualClock clock;
  ConnectRates rates(clock, {.per_second = 1, .burst = 1});
  size_t most = 0;
  for (int count = 0; count < 1000; ++count) {
    (void)rates.IsTooFast("pod " + std::to_string(count));
    clock.Advance(std::chrono::seconds(1));
    most = std::max(most, rates.size());
  }
  EXPECT_LE(most, 70u);
}

constexpr int32_t kPid = 17;
constexpr std::chrono::milliseconds kMs{1};

TEST(ConnectBackoff, APeriodThatDoublesFollowsEachRefusal) {
  ConnectBackoff backoff;
  Instant now;
  EXPECT_FALSE(backoff.Holds(kPid, now));
  for (auto period = ConnectBackoff::kFirst; period < ConnectBackoff::kLongest; period *= 2) {
    backoff.Refused(kPid, now);
    EXPECT_TRUE(backoff.Holds(kPid, now + period - kMs));
    EXPECT_FALSE(backoff.Holds(kPid, now + period));
    now += period;
  }
  backoff.Refused(kPid, now);
  EXPECT_TRUE(backoff.Holds(kPid, now + ConnectBackoff::kLongest - kMs));
  EXPECT_FALSE(backoff.Holds(kPid, now + ConnectBackoff::kLongest));
}

TEST(ConnectBackoff, TellsHowLongItLasts) {
  ConnectBackoff backoff;
  const Instant now;
  EXPECT_EQ(backoff.Left(kPid, now).count(), 0);
  backoff.Refused(kPid, now);
  EXPECT_EQ(backoff.Left(kPid, now), ConnectBackoff::kFirst);
  EXPECT_EQ(backoff.Left(kPid, now + ConnectBackoff::kFirst - std::chrono::nanoseconds(1)), kMs) << "never too short";
  EXPECT_EQ(backoff.Left(kPid, now + ConnectBackoff::kFirst).count(), 0);
}

TEST(ConnectBackoff, OnlyTheRefusedProcessWaits) {
  ConnectBackoff backoff;
  backoff.Refused(kPid, Instant());
  EXPECT_FALSE(backoff.Holds(kPid + 1, Instant()));
}

TEST(ConnectBackoff, ProcessesThatCannotBeDistinguishedDoNotWaitForEachOther) {
  ConnectBackoff backoff;
  backoff.Refused(0, Instant());
  EXPECT_FALSE(backoff.Holds(0, Instant()));
}

TEST(ConnectBackoff, WhoWasQuietOrAdmittedBeginsAnew) {
  ConnectBackoff backoff;
  Instant now;
  backoff.Refused(kPid, now);
  backoff.Refused(kPid, now);
  now += 2 * ConnectBackoff::kFirst + ConnectBackoff::kLongest;
  backoff.Refused(kPid, now);
  EXPECT_FALSE(backoff.Holds(kPid, now + ConnectBackoff::kFirst)) << "quiet for long enough";
  backoff.Admitted(kPid);
  EXPECT_FALSE(backoff.Holds(kPid, now));
  EXPECT_EQ(backoff.size(), 0U);
}

TEST(ConnectBackoff, ItsMemoryIsBounded) {
  ConnectBackoff backoff;
  Instant now;
  constexpr auto kMany = static_cast<int32_t>(ConnectBackoff::kEntriesMax);
  for (int32_t pid = 1; pid <= 2 * kMany; ++pid) {
    backoff.Refused(pid, now);
  }
  EXPECT_EQ(backoff.size(), ConnectBackoff::kEntriesMax);
  now += ConnectBackoff::kFirst + ConnectBackoff::kLongest;
  backoff.Refused(2 * kMany, now);
  EXPECT_EQ(backoff.size(), 1U);
}

}  // namespace
}  // namespace rnicd::door
