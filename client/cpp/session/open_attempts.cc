#include "client/cpp/session/open_attempts.h"

#include <algorithm>

#include "base/status.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

constexpr int kAtOnce = 3;
// A daemon that has too many connections closes them too, and its clients must not make that worse.
constexpr int kUnansweredMax = 6;
constexpr std::chrono::milliseconds kPauseMin{10};
constexpr std::chrono::milliseconds kPauseMax{200};

std::chrono::milliseconds PauseBefore(int repetition) {
  if (repetition < kAtOnce) {
    return std::chrono::milliseconds(0);
  }
  const int doublings = std::min(repetition - kAtOnce, 8);
  return std::min(kPauseMin * (1 << doublings), kPauseMax);
}

}  // namespace

std::optional<std::chrono::milliseconds> OpenAttempts::PauseAfter(const absl::Status& failure, bool unanswered,
                                                                  Instant now) {
  const bool lost = unanswered && IsTransportFailure(failure) && repeated_ < kUnansweredMax;
  const std::chrono::milliseconds pause = PauseBefore(repeated_);
  if ((!lost && !FailedWith(failure, ErrorReason::DAEMON_HANDED_OVER)) || now + pause >= deadline_) {
    return std::nullopt;
  }
  ++repeated_;
  return pause;
}

}  // namespace rnicd::inline client
