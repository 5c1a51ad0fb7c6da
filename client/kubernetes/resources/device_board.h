#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/kubernetes/resources/inventory.h"

namespace rnicd::kubernetes {

// The devices of one resource, for the streams that report changes to the kubelet.
// Threads: safe.
class DeviceBoard {
 public:
  struct View {
    std::vector<Device> devices;
    // Increases with each change; 0 only before the first Set.
    uint64_t version = 0;
    // Close was called.
    bool closed = false;
  };

  // Does nothing when the devices are unchanged.
  void Set(std::vector<Device> devices);
  View Get() const;
  // Waits until the version differs from `version`, Close is called, `*interrupted` is true, or the timeout passes, and
  // returns the current view. The thread that sets `interrupted` calls Nudge afterwards.
  View WaitForChange(uint64_t version, std::chrono::milliseconds timeout,
                     const std::atomic<bool>* interrupted = nullptr) const;
  // Makes every waiting thread check `interrupted`.
  void Nudge() const;
  // Wakes all waiting threads; later waits return at once.
  void Close();

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  View view_ RNICD_GUARDED_BY(mutex_);
};

// A resource that the plugin offers.
struct OfferedResource {
  std::string name;
  const DeviceBoard* board = nullptr;
};

}  // namespace rnicd::kubernetes
