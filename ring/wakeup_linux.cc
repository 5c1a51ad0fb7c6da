#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "ring/layout.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::ring {
namespace {

// Limit of client threads that one wake-up wakes: it runs under a lock, so the client must not decide how long it
// takes.
constexpr int kSleepersMax = 64;

}  // namespace

// Not an eventfd: a client that has one can make it block its writer, since both share one open file.
bool WakeSleeper(uint32_t wakeup, uint32_t& word, uint32_t* wakes) {
  if (wakeup == static_cast<uint32_t>(Wakeup::kFutex)) {
    StoreRelease(word, ++*wakes);
    syscall(SYS_futex, &word, FUTEX_WAKE, kSleepersMax, nullptr, nullptr, 0);
  }
  return wakeup == static_cast<uint32_t>(Wakeup::kPipe);
}

void FutexWait(uint32_t& word, uint32_t seen, std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const timespec wait = {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &wait, nullptr, 0);
}

}  // namespace rnicd::ring
