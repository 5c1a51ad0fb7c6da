#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "base/status.h"
#include "provider/api/device.h"
#include "provider/engine/byte_runs.h"
#include "provider/engine/grant_holder.h"

namespace rnicd::provider {

// A memory region that counts the windows bound to it: while there is one, it is not deregistered.
class EngineMemoryRegion : public DeviceMemoryRegion {
 public:
  absl::Status Deregister() final {
    {
      MutexLock lock(mutex_);
      if (windows_ > 0) {
        return MakeError(ErrorReason::REGION_HAS_WINDOWS);
      }
      refuses_windows_ = true;
    }
    absl::Status ended = End();
    if (!ended.ok()) {
      MutexLock lock(mutex_);
      refuses_windows_ = false;
    }
    return ended;
  }
  using Grant = absl::StatusOr<std::unique_ptr<EngineGrant>>;
  // The grant of a bind, which `make` makes while a window is counted, because the region could be deregistered
  // meanwhile. Errors: REGION_NOT_REGISTERED, those of `make`.
  Grant MakeGrant(const BindWork& work, absl::FunctionRef<Grant(const EngineGrant::Shape&)> make) {
    if (!AddWindow()) {
      return MakeError(ErrorReason::REGION_NOT_REGISTERED, "bind.mr_id");
    }
    const std::vector<std::span<std::byte>> runs = SliceRuns(runs_, work.base.value - base_.value, work.length);
    Grant grant = make({.base = work.base, .length = work.length, .rights = work.rights, .runs = runs});
    RemoveWindow();
    return grant;
  }
  // Counts a window. False when the region is deregistered.
  bool AddWindow() {
    MutexLock lock(mutex_);
    windows_ += refuses_windows_ ? 0 : 1;
    return !refuses_windows_;
  }
  void RemoveWindow() {
    MutexLock lock(mutex_);
    --windows_;
  }

 protected:
  explicit EngineMemoryRegion(const DeviceRegistration& request)
      : base_(request.base), rights_(request.rights), runs_(request.runs.begin(), request.runs.end()) {}

  const VirtualAddress base_;
  const AccessRights rights_;
  const std::vector<std::span<std::byte>> runs_;

 private:
  // Deregister of the card. Does nothing when that has succeeded before.
  virtual absl::Status End() = 0;

  Mutex mutex_;
  uint64_t windows_ RNICD_GUARDED_BY(mutex_) = 0;
  bool refuses_windows_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
