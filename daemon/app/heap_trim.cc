#include "daemon/app/heap_trim.h"

#include <malloc.h>

namespace rnicd::app {

void HeapTrim::Observe(const core::Observation& observation) {
  if (observation.As<core::SessionEnded>() == nullptr || due_->exchange(true)) {
    return;
  }
  alarms_.Set(kDelay, [due = due_, trim = trim_] {
    due->store(false);
    trim();
  });
}

void KeepHeapsSmall() {
  constexpr int kBytes = 256 << 10;
  mallopt(M_MMAP_THRESHOLD, kBytes);
  mallopt(M_TRIM_THRESHOLD, kBytes);
}

void TrimHeaps() { malloc_trim(0); }

}  // namespace rnicd::app
