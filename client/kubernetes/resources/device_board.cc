#include "client/kubernetes/resources/device_board.h"

#include <utility>

namespace rnicd::kubernetes {

void DeviceBoard::Set(std::vector<Device> devices) {
  MutexLock lock(mutex_);
  if (view_.version != 0 && view_.devices == devices) {
    return;
  }
  view_.devices = std::move(devices);
  ++view_.version;
  changed_.NotifyAll();
}

DeviceBoard::View DeviceBoard::Get() const {
  MutexLock lock(mutex_);
  return view_;
}

DeviceBoard::View DeviceBoard::WaitForChange(uint64_t version, std::chrono::milliseconds timeout,
                                             const std::atomic<bool>* interrupted) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (view_.version == version && !view_.closed && (interrupted == nullptr || !interrupted->load())) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      break;
    }
  }
  return view_;
}

void DeviceBoard::Nudge() const {
  // Under the lock, so that no thread is between checking `interrupted` and waiting.
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

void DeviceBoard::Close() {
  MutexLock lock(mutex_);
  view_.closed = true;
  changed_.NotifyAll();
}

}  // namespace rnicd::kubernetes
