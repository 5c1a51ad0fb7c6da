#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "client/kubernetes/inventory.h"

namespace rnicd::kubernetes {

// The devices of one resource, for the streams that tell the kubelet of changes.
// Threads: safe.
class DeviceBoard {
 public:
  struct View {
    std::vector<Device> devices;
    // Grows with each change; 0 only before the first Set.
    uint64_t version = 0;
    // Close was called.
    bool closed = false;
  };

  // Changes nothing when they are the same.
  void Set(std::vector<Device> devices);
  View Get() const;
  // Waits until the version is another one, Close is called, `interrupted` holds, or the time is over; answers what is
  // there then. Who sets `interrupted` calls Nudge afterwards.
  View WaitForChange(uint64_t version, std::chrono::milliseconds patience,
                     const std::atomic<bool>* interrupted = nullptr) const;
  // Makes all who wait look whether they are interrupted.
  void Nudge() const;
  // Wakes all who wait, now and from now on.
  void Close();

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  View view_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::kubernetes
