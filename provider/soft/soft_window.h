#pragma once

#include <memory>

#include "provider/api/queue_pair.h"
#include "provider/soft/memory/soft_target.h"
#include "provider/soft/soft_key_holder.h"

namespace rnicd::provider {

class BoundWindow;

// A memory window of type 2: bound to a part of a region and to the queue pair that bound it.
// Threads: safe.
class SoftWindow final : public DeviceMemoryWindow, public std::enable_shared_from_this<SoftWindow> {
 public:
  // Errors: DEVICE_OUT_OF_RESOURCES.
  static absl::StatusOr<std::shared_ptr<SoftWindow>> Create(std::shared_ptr<SoftNic> nic, uint64_t domain);
  ~SoftWindow() override;

  RemoteToken remote_token() const override;
  void Retire() override;

  // Issues the token of a request that was just accepted.
  RemoteToken IssueToken();
  // False when the window is bound or retired, or the region is no longer registered.
  bool Bind(BindWork& work, RemoteToken token, uint64_t queue_pair);
  // Returns when transfers no longer pass through the window. False when the window is not bound or, if `only` is not
  // null, when the binding is not `only`.
  bool Invalidate(const BoundWindow* only = nullptr);

 private:
  SoftWindow(std::shared_ptr<SoftNic> nic, uint64_t domain, SoftKeyTable::Keys keys);

  const uint64_t domain_;
  SoftKeyHolder<BoundWindow> holder_;
};

}  // namespace rnicd::provider
