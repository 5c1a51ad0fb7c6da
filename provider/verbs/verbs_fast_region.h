#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "provider/api/queue_pair.h"
#include "provider/verbs/grant.h"

namespace rnicd::provider {

struct PreparedRequest;

// A fast region of a card, of either kind.
class VerbsFastRegion : public DeviceFastRegion, public Invalidatable {
 public:
  // The first half of a registration, when its request is posted: every step that can fail. Errors: those of Grant, and
  // of ModuleStatus.
  virtual absl::Status Prepare(const FastRegisterWork& work, PreparedRequest& prepared) = 0;
  // Records the token of a request that was accepted.
  virtual void Issue(RemoteToken token) = 0;
  // Returns when transfers no longer reach the pages. False when there was no registration or the card refused.
  virtual bool Invalidate() = 0;
  // True for a KernelFastRegion.
  virtual bool is_kernel() const { return false; }
};

// A page under a key without rights, so that no other token can equal its local key. Errors: those of
// Registration::Make.
absl::StatusOr<std::unique_ptr<Registration>> RegisterPlaceholder(const std::shared_ptr<VerbsDomain>& domain);

// A pair of tokens under which requests register pages. The local token is a key of the card that reaches nothing
// itself; the domain maps requests that name it to the key of the registration in force.
// Threads: safe. Executions on different queue pairs are serialized.
class GrantFastRegion final : public VerbsFastRegion, public std::enable_shared_from_this<GrantFastRegion> {
 public:
  // Errors: those of Registration::Make.
  static absl::StatusOr<std::shared_ptr<GrantFastRegion>> Create(std::shared_ptr<VerbsDomain> domain);
  ~GrantFastRegion() override;

  LocalToken local_token() const override { return LocalToken{placeholder_->lkey()}; }
  RemoteToken remote_token() const override;
  bool registered() const override;
  void Retire() override;

  absl::Status Prepare(const FastRegisterWork& work, PreparedRequest& prepared) override;
  void Issue(RemoteToken token) override;
  // True when a registration may begin: none is in force and the region is not retired.
  bool CanRegister() const;
  // The second half, when the request is executed. False, and the grant is ended, when CanRegister is false.
  bool Register(std::unique_ptr<Grant> grant, std::shared_ptr<const void> backing);
  bool Invalidate() override;
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override;

 private:
  GrantFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder);
  // Ends the registration in force; `kept` receives the reference that must be released without the lock.
  bool EndCurrent(std::shared_ptr<const void>& kept) RNICD_REQUIRES(mutex_);

  const std::shared_ptr<VerbsDomain> domain_;
  const std::unique_ptr<Registration> placeholder_;

  mutable Mutex mutex_;
  RemoteToken issued_ RNICD_GUARDED_BY(mutex_);
  std::unique_ptr<Grant> current_ RNICD_GUARDED_BY(mutex_);
  std::shared_ptr<const void> backing_ RNICD_GUARDED_BY(mutex_);
  bool retired_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
