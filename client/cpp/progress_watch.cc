#include "client/cpp/progress_watch.h"

namespace rnicd::inline client {

std::unique_ptr<ProgressWatch::Watch> ProgressWatch::Add(Callback callback) {
  MutexLock lock(mutex_);
  callbacks_.emplace(++last_context_, std::move(callback));
  return std::make_unique<Watch>(shared_from_this(), last_context_);
}

void ProgressWatch::Deliver(const v1::MemoryProgress& event) {
  MutexLock lock(mutex_);
  if (const auto found = callbacks_.find(event.progress_context()); found != callbacks_.end()) {
    found->second(event.populated_bytes(), event.size());
  }
}

void ProgressWatch::Remove(uint64_t context) {
  MutexLock lock(mutex_);
  callbacks_.erase(context);
}

}  // namespace rnicd::inline client
