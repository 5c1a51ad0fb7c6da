#include "daemon/core/request/closable.h"

#include "base/status.h"

namespace rnicd::core {

void Closable::Hold::Release() {
  if (object_ != nullptr) {
    // The object must outlive this call, which may release its last hold.
    const std::shared_ptr<Closable> object = std::move(object_);
    object_.reset();
    object->Drop();
  }
}

absl::StatusOr<Closable::Hold> Closable::Acquire() {
  MutexLock lock(mutex_);
  if (closing_) {
    return MakeError(ErrorReason::OBJECT_CLOSING, id_field_);
  }
  ++holds_;
  return Hold(shared_from_this());
}

absl::StatusOr<Closable::CloseResult> Closable::Close(std::function<void()> on_closed) {
  {
    MutexLock lock(mutex_);
    if (closing_) {
      return MakeError(ErrorReason::OBJECT_CLOSING, id_field_);
    }
    closing_ = true;
    if (holds_ > 0) {
      on_closed_ = std::move(on_closed);
      return CloseResult::kPending;
    }
  }
  Finalize();
  ReleaseParents();
  return CloseResult::kClosed;
}

bool Closable::closing() const {
  MutexLock lock(mutex_);
  return closing_;
}

void Closable::Drop() {
  std::function<void()> on_closed;
  {
    MutexLock lock(mutex_);
    --holds_;
    if (holds_ > 0 || !closing_) {
      return;
    }
    on_closed = std::move(on_closed_);
  }
  Finalize();
  if (on_closed != nullptr) {
    on_closed();
  }
  ReleaseParents();
}

}  // namespace rnicd::core
