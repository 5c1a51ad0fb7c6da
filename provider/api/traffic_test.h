#pragma once

// Traffic of several threads, as the race tests of every provider make and check it.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "base/status.h"
#include "provider/api/queue_pair.h"
#include "provider/api/recording_listener_test.h"

namespace rnicd::provider {

inline constexpr uint64_t kUntilRefused = UINT64_MAX;

using Make = std::function<WorkRequest(uint64_t)>;

// Posts make(0), make(1) and so on, until `count` are accepted or the queue pair has ended. Returns the number
// accepted.
template <typename Side>
uint64_t PostAll(Side& side, uint64_t count, const Make& make) {
  uint64_t accepted = 0;
  while (accepted < count) {
    const absl::Status status = side.TryPost(make(accepted));
    if (status.ok()) {
      ++accepted;
    } else if (FailedWith(status, ErrorReason::QP_NOT_CONNECTED)) {
      break;
    } else {
      std::this_thread::yield();
    }
  }
  return accepted;
}

// All were reported, each exactly once and in the order of its number, and nothing succeeded behind a failure.
inline void ExpectAllInOrder(const Outcomes& outcomes, uint64_t accepted) {
  ASSERT_EQ(outcomes.size(), accepted);
  bool failed = false;
  for (uint64_t number = 0; number < accepted; ++number) {
    ASSERT_EQ(outcomes[number].context, number);
    const bool success = outcomes[number].status == NtStatus::kSuccess;
    ASSERT_FALSE(failed && success) << number;
    failed = !success;
  }
}

}  // namespace rnicd::provider
