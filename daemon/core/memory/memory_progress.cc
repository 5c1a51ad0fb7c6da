#include "daemon/core/memory/memory_progress.h"

#include <algorithm>

namespace rnicd::core {
namespace {

constexpr uint64_t kReports = 64;
constexpr uint64_t kLeastReported = uint64_t{64} << 20;

}  // namespace

void ProgressReport::Note(uint64_t populated) {
  {
    MutexLock lock(mutex_);
    populated_ = std::max(populated_, populated);
    if (queued_ || populated_ - reported_ < std::max(size_ / kReports, kLeastReported)) {
      return;
    }
    queued_ = true;
  }
  events_.PushSource(shared_from_this());
}

EventSource::Taken ProgressReport::TakeEvent() {
  MutexLock lock(mutex_);
  queued_ = false;
  reported_ = populated_;
  return {.body = MemoryProgress{.context = context_, .populated_bytes = populated_, .size = size_}};
}

}  // namespace rnicd::core
