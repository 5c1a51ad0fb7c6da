#include <pthread.h>
#include <unistd.h>

#include <ctime>

#include "base/system/this_thread.h"

namespace rnicd {

void LowerPriority() {
  constexpr int kTheMost = 19;
  (void)nice(kTheMost);
}

void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

std::chrono::nanoseconds ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace rnicd
