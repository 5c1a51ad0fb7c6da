#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/verbs/grant.h"
#include "provider/verbs/verbs_memory_region.h"

namespace rnicd::provider {

// A memory window: a part of a region with its own token and rights. If the card's windows are not used, it is a
// registration of that part, which works on every queue pair of the domain and not only on the one that bound it.
// Threads: safe.
class VerbsWindow final : public DeviceMemoryWindow,
                          public Invalidatable,
                          public std::enable_shared_from_this<VerbsWindow> {
 public:
  explicit VerbsWindow(std::shared_ptr<VerbsDomain> domain)
      : domain_(std::move(domain)), issued_{domain_->privileged_token()} {}
  ~VerbsWindow() override;

  RemoteToken remote_token() const override;
  void Retire() override;

  // As VerbsFastRegion::Prepare. Additional errors: REGION_NOT_REGISTERED; DEVICE_NOT_CAPABLE for
  // a region of a dma-buf.
  absl::StatusOr<std::unique_ptr<Grant>> Prepare(const BindWork& work) const;
  void Issue(RemoteToken token);
  // True when a binding may begin, which then keeps the region registered; Bind or AbortBind must follow.
  bool BeginBind(const BindWork& work);
  // Binds it through the queue pair of this number. False, and the grant is ended, when the window was retired or bound
  // meanwhile.
  bool Bind(std::unique_ptr<Grant> grant, BindWork& work, uint32_t queue_pair);
  void AbortBind(const BindWork& work);
  bool Invalidate();
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 private:
  struct Kept {
    std::shared_ptr<DeviceMemoryRegion> region;
    std::shared_ptr<const void> backing;
  };
  bool EndCurrent(Kept& kept) RNICD_REQUIRES(mutex_);

  const std::shared_ptr<VerbsDomain> domain_;

  mutable Mutex mutex_;
  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<Grant> current_ RNICD_GUARDED_BY(mutex_);
  Kept kept_ RNICD_GUARDED_BY(mutex_);
  uint32_t bound_by_ RNICD_GUARDED_BY(mutex_) = 0;
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
