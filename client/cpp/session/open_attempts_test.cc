#include "client/cpp/session/open_attempts.h"

#include <vector>

#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;

constexpr Instant kStart{std::chrono::hours(1)};

// The pauses of a client whose attempts take no time, until it gives up.
std::vector<int64_t> Pauses(const absl::Status& failure, bool unanswered, milliseconds patience) {
  OpenAttempts attempts(kStart + patience);
  std::vector<int64_t> pauses;
  Instant now = kStart;
  while (const auto pause = attempts.PauseAfter(failure, unanswered, now)) {
    pauses.push_back(pause->count());
    now += *pause;
  }
  return pauses;
}

TEST(OpenAttempts, HandedOverIsAskedAgainAtOnceAndThenWithPausesUntilTheDeadline) {
  const absl::Status refusal = MakeError(ErrorReason::DAEMON_HANDED_OVER);
  EXPECT_EQ(Pauses(refusal, false, milliseconds(900)), (std::vector<int64_t>{0, 0, 0, 10, 20, 40, 80, 160, 200, 200}));
  EXPECT_TRUE(Pauses(refusal, false, milliseconds(0)).empty());
}

TEST(OpenAttempts, ConnectionClosedUnansweredIsReplacedAFewTimes) {
  const absl::Status closed = TransportFailure(absl::StatusCode::kUnavailable, "closed");
  EXPECT_EQ(Pauses(closed, true, std::chrono::hours(1)), (std::vector<int64_t>{0, 0, 0, 10, 20, 40}));
}

TEST(OpenAttempts, OtherFailuresAreTheAnswer) {
  EXPECT_TRUE(Pauses(MakeError(ErrorReason::DAEMON_DRAINING), true, std::chrono::hours(1)).empty());
  EXPECT_TRUE(
      Pauses(TransportFailure(absl::StatusCode::kDeadlineExceeded, "late"), false, std::chrono::hours(1)).empty());
}

}  // namespace
}  // namespace rnicd::inline client
