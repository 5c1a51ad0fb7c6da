#include "daemon/app/heap_trim.h"

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

}  // namespace rnicd::app
