#pragma once

#include <pthread.h>

#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error_reason.h"
#include "base/status.h"
#include "client/c/rnicd.h"

namespace rnicd::c {

// The errno value, positive, of every failure for this reason.
int ErrnoOf(ErrorReason reason);
// The errno value of a failure: that of WithErrno, of its reason, or of a transport failure.
int ErrnoOf(const absl::Status& failure);
// The same failure, with another errno value than that of its reason.
absl::Status WithErrno(absl::Status failure, int code);

// What a program is told of a failure.
rnicd_error Describe(const absl::Status& failure) noexcept;
// Makes the failure the thread's last, and returns its errno value, negative.
int Fail(const absl::Status& failure) noexcept;
// The same for an allocation that failed.
int FailForMemory() noexcept;

// While it exists its thread is not cancelled: that would unwind through functions that throw nothing, which ends the
// process.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// The body of a function of the interface: returns a Status, or a StatusOr<int> with what the function returns. Nothing
// is thrown through it; containers throw for want of memory only.
template <typename Body>
int Run(Body&& body) noexcept {
  const NoCancellation no_cancellation;
  try {
    const auto result = std::forward<Body>(body)();
    if constexpr (std::is_same_v<decltype(result), const absl::Status>) {
      return result.ok() ? 0 : Fail(result);
    } else {
      return result.ok() ? *result : Fail(result.status());
    }
  } catch (const std::exception&) {
    return FailForMemory();
  }
}

}  // namespace rnicd::c
