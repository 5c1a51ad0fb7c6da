#include <windows.h>
// Behind windows.h, whose types it uses.
#include <synchapi.h>

#include <algorithm>

#include "ring/layout.h"
#include "ring/shared_word.h"
#include "ring/wakeup.h"

namespace rnicd::ring {

// Windows wakes threads by the address of a word only within one process.
bool WakeSleeper(uint32_t wakeup, uint32_t& word, uint32_t* wakes) {
  if (wakeup == static_cast<uint32_t>(Wakeup::kFutex)) {
    StoreRelease(word, ++*wakes);
    WakeByAddressAll(&word);
  }
  return wakeup == static_cast<uint32_t>(Wakeup::kPipe);
}

// Source: WaitOnAddress.
void FutexWait(uint32_t& word, uint32_t seen, std::chrono::nanoseconds time) {
  // INFINITE, all bits set, means no timeout, which the caller did not request.
  const auto milliseconds =
      std::clamp<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count(), 0, INFINITE - 1);
  WaitOnAddress(&word, &seen, sizeof(word), static_cast<DWORD>(milliseconds));
}

}  // namespace rnicd::ring
