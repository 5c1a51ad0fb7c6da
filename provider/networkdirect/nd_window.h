#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/networkdirect/nd_grant.h"
#include "provider/networkdirect/nd_memory_region.h"

namespace rnicd::provider {

// A memory window: a part of a region with a token and rights of its own. Where no window of the card can express it, a
// registration of that part, which works on every queue pair of the domain and not only on the one that bound it.
// Threads: safe.
class NdWindow final : public DeviceMemoryWindow, public Invalidatable, public std::enable_shared_from_this<NdWindow> {
 public:
  explicit NdWindow(std::shared_ptr<NdDomain> domain)
      : domain_(std::move(domain)), first_token_(domain_->remote_tokens().Reserve()), issued_{first_token_} {}
  ~NdWindow() override;

  RemoteToken remote_token() const override;
  void Retire() override;

  // Every step of a bind that can fail, when its request is posted. Errors: those of NdGrant::ForBind;
  // REGION_NOT_REGISTERED.
  absl::StatusOr<std::unique_ptr<NdGrant>> Prepare(const BindWork& work, bool connected) const;
  void Issue(RemoteToken token);
  // True when a binding may begin, which then keeps the region registered; Bind or AbortBind must follow.
  bool BeginBind(const BindWork& work);
  // Puts the grant in force, as NdFastRegion::Register. False, and the grant is ended, when the window was retired or
  // bound meanwhile.
  bool Bind(std::unique_ptr<NdGrant> grant, RemoteToken token, uint64_t queue_pair, BindWork& work);
  void AbortBind(const BindWork& work);
  // As those of NdFastRegion.
  ComPtr<IND2MemoryWindow> WindowOf(uint64_t queue_pair) const;
  bool Invalidate();
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 private:
  struct Kept {
    std::shared_ptr<DeviceMemoryRegion> region;
    std::shared_ptr<const void> backing;
  };
  // Puts the binding in force under its token.
  void Publish() RNICD_REQUIRES(mutex_);
  bool EndCurrent(Kept& kept) RNICD_REQUIRES(mutex_);

  const std::shared_ptr<NdDomain> domain_;
  const uint32_t first_token_;

  mutable Mutex mutex_;
  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<NdGrant> current_ RNICD_GUARDED_BY(mutex_);
  RemoteToken current_token_ RNICD_GUARDED_BY(mutex_);
  Kept kept_ RNICD_GUARDED_BY(mutex_);
  uint64_t bound_by_ RNICD_GUARDED_BY(mutex_) = 0;
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
