#include "daemon/core/region/memory_window.h"

#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<MemoryWindow>> MemoryWindow::Create(std::shared_ptr<ProtectionDomain> domain,
                                                                   std::shared_ptr<Charge> charge) {
  RNICD_ASSIGN_OR_RETURN(Kept<ProtectionDomain> kept, Kept<ProtectionDomain>::Of(std::move(domain)));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<provider::DeviceMemoryWindow> device, kept->device().CreateMemoryWindow());
  std::shared_ptr<MemoryWindow> window(new MemoryWindow(std::move(kept), std::move(charge)));
  MutexLock lock(window->mutex_);
  window->device_ = std::move(device);
  return window;
}

std::shared_ptr<provider::DeviceMemoryWindow> MemoryWindow::device() const {
  MutexLock lock(mutex_);
  return device_;
}

void MemoryWindow::RecordBind() {
  MutexLock lock(mutex_);
  ever_bound_ = true;
}

absl::StatusOr<RemoteToken> MemoryWindow::GetRemoteToken() const {
  MutexLock lock(mutex_);
  if (!ever_bound_ || device_ == nullptr) {
    return MakeError(ErrorReason::WINDOW_NOT_BOUND, "mw_id");
  }
  return device_->remote_token();
}

void MemoryWindow::Finalize() {
  std::shared_ptr<provider::DeviceMemoryWindow> device;
  {
    MutexLock lock(mutex_);
    device = std::move(device_);
  }
  device->Retire();
}

}  // namespace rnicd::core
