#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/networkdirect/nd_grant.h"

namespace rnicd::provider {

// A pair of tokens under which requests register pages. Threads: safe. Executions on different queue pairs are
// serialized.
class NdFastRegion final : public DeviceFastRegion,
                           public Invalidatable,
                           public std::enable_shared_from_this<NdFastRegion> {
 public:
  explicit NdFastRegion(std::shared_ptr<NdDomain> domain);
  ~NdFastRegion() override;

  LocalToken local_token() const override { return LocalToken{local_token_}; }
  RemoteToken remote_token() const override;
  bool registered() const override;
  void Retire() override;

  // Records the token of a request that was accepted.
  void Issue(RemoteToken token);
  // True when a registration may begin: none is in force and the region is not retired.
  bool CanRegister() const;
  // Puts a grant in force under the token, which the region then removes from its domain; `queue_pair` has bound its
  // window. False, and the grant is ended, when CanRegister is false.
  bool Register(std::unique_ptr<NdGrant> grant, RemoteToken token, uint64_t queue_pair,
                std::shared_ptr<const void> backing);
  // The window of the registration in force, if the queue pair has bound it; otherwise null.
  ComPtr<IND2MemoryWindow> WindowOf(uint64_t queue_pair) const;
  // Returns when transfers no longer reach the pages. False when there was no registration or the card refused.
  bool Invalidate();
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 private:
  // Puts the registration in force under both tokens.
  void Publish() RNICD_REQUIRES(mutex_);
  // Ends the registration in force; `kept` receives the reference that must be released without the lock.
  bool EndCurrent(std::shared_ptr<const void>& kept) RNICD_REQUIRES(mutex_);

  const std::shared_ptr<NdDomain> domain_;
  const uint32_t local_token_;
  // What remote_token() is before the first registration; reaches nothing.
  const uint32_t first_token_;

  mutable Mutex mutex_;
  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<NdGrant> current_ RNICD_GUARDED_BY(mutex_);
  RemoteToken current_token_ RNICD_GUARDED_BY(mutex_);
  uint64_t bound_by_ RNICD_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const void> backing_ RNICD_GUARDED_BY(mutex_);
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
