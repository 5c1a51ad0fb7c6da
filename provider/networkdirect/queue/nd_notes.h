#pragma once

#include <deque>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// What sends ask of their receiver besides the bytes, which the card does not transmit; in the order of the sends on
// their way to one queue pair.
// Threads: safe.
class NdNotes {
 public:
  void Push(const SendWork& note) {
    MutexLock lock(mutex_);
    notes_.push_back(note);
  }
  // The card has refused the send of the last one.
  void UndoPush() {
    MutexLock lock(mutex_);
    notes_.pop_back();
  }
  // The note of the send that has arrived.
  std::optional<SendWork> Take() {
    MutexLock lock(mutex_);
    if (notes_.empty()) {
      return std::nullopt;
    }
    const SendWork note = notes_.front();
    notes_.pop_front();
    return note;
  }

 private:
  Mutex mutex_;
  std::deque<SendWork> notes_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
