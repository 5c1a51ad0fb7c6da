#include "daemon/core/region/adapter.h"

#include <utility>

#include "base/status.h"

namespace rnicd::core {

absl::Status CheckNdkVersion(NdkVersion wanted) {
  if (wanted.major != kNdkVersion.major || wanted.minor > kNdkVersion.minor) {
    return MakeError(ErrorReason::NDK_VERSION_UNSUPPORTED, "version");
  }
  return absl::OkStatus();
}

absl::StatusOr<Kept<Adapter>> Adapter::Keep(std::shared_ptr<Adapter> adapter) {
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Kept<Adapter>::Of(std::move(adapter)));
  if (kept->device().removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED, "adapter_id");
  }
  return kept;
}

bool Adapter::removed() const {
  MutexLock lock(mutex_);
  return device_ != nullptr && device_->removed();
}

bool Adapter::closed() const {
  MutexLock lock(mutex_);
  return device_ == nullptr;
}

bool Adapter::AnnounceRemoval(AdapterId id, EventQueue& events) {
  {
    MutexLock lock(mutex_);
    if (events_ != nullptr || device_ == nullptr) {
      return false;
    }
    id_ = id;
    events_ = &events;
  }
  events.PushSource(std::shared_ptr<EventSource>(shared_from_this(), this));
  return true;
}

// A closed adapter says nothing more.
EventSource::Taken Adapter::TakeEvent() {
  MutexLock lock(mutex_);
  return device_ == nullptr ? Taken{} : Taken{.body = AdapterRemoved{.adapter = id_}};
}

void Adapter::Finalize() {
  std::unique_ptr<provider::DeviceAdapter> device;
  EventQueue* events = nullptr;
  {
    MutexLock lock(mutex_);
    device = std::move(device_);
    events = events_;
  }
  if (events != nullptr) {
    events->Withdraw(*this);
  }
  device.reset();
  charge_.Refund();
}

}  // namespace rnicd::core
