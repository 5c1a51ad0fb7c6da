#pragma once

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "provider/soft/soft_nic.h"

namespace rnicd::provider {

// A pair of keys that reach a target from one request until its invalidation, and reach nothing otherwise: the body of
// a fast region and of a window. `Target` is a SoftTarget with `bool Revoke()`, which waits until transfers no longer
// pass through it and returns true for its first caller.
// Threads: safe.
template <typename Target>
class SoftKeyHolder {
 public:
  SoftKeyHolder(std::shared_ptr<SoftNic> nic, SoftKeyTable::Keys keys)
      : nic_(std::move(nic)), local_(keys.local), issued_(keys.remote) {}
  ~SoftKeyHolder() {
    Retire();
    nic_->keys().Remove(local_);
  }
  SoftKeyHolder(const SoftKeyHolder&) = delete;
  SoftKeyHolder& operator=(const SoftKeyHolder&) = delete;

  SoftNic& nic() const { return *nic_; }
  LocalToken local_token() const { return local_; }
  RemoteToken remote_token() const {
    MutexLock lock(mutex_);
    return issued_;
  }
  bool has_target() const {
    MutexLock lock(mutex_);
    return target_ != nullptr;
  }

  // Issues the token of a request that was just accepted.
  RemoteToken IssueToken() {
    MutexLock lock(mutex_);
    issued_ = SoftKeyTable::NextVariant(issued_);
    return issued_;
  }

  // Makes the keys reach what `make` returns, under the lock. False when there is a target, after Retire, and when
  // `make` returns null.
  bool Set(RemoteToken token, absl::FunctionRef<std::shared_ptr<Target>()> make) {
    MutexLock lock(mutex_);
    if (retired_ || target_ != nullptr) {
      return false;
    }
    target_ = make();
    if (target_ == nullptr) {
      return false;
    }
    nic_->keys().Replace({.local = local_, .remote = token}, target_);
    return true;
  }

  // Returns when transfers no longer reach the target. False when there is none or, if `only` is not null, when it is
  // not `only`. It stays set until it is revoked, so that a second caller, Retire in particular, waits for it too.
  bool Invalidate(const Target* only = nullptr) {
    std::shared_ptr<Target> target;
    {
      MutexLock lock(mutex_);
      if (target_ == nullptr || (only != nullptr && target_.get() != only)) {
        return false;
      }
      target = target_;
      nic_->keys().Replace({.local = local_, .remote = issued_}, nullptr);
    }
    const bool first = target->Revoke();
    MutexLock lock(mutex_);
    if (target_ == target) {
      target_ = nullptr;
    }
    return first;
  }

  void Retire() {
    {
      MutexLock lock(mutex_);
      retired_ = true;
    }
    Invalidate();
  }

 private:
  const std::shared_ptr<SoftNic> nic_;
  // A window has no local use: its local key reaches nothing.
  const LocalToken local_;
  mutable Mutex mutex_;
  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<Target> target_ RNICD_GUARDED_BY(mutex_);
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
