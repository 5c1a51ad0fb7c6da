#include "provider/networkdirect/nd_fast_region.h"

#include <utility>

namespace rnicd::provider {

NdFastRegion::NdFastRegion(std::shared_ptr<NdDomain> domain)
    : domain_(std::move(domain)),
      local_token_(domain_->local_tokens().Reserve()),
      first_token_(domain_->remote_tokens().Reserve()),
      issued_{first_token_} {}

NdFastRegion::~NdFastRegion() {
  Retire();
  domain_->local_tokens().Remove(local_token_);
  domain_->remote_tokens().Remove(first_token_);
}

RemoteToken NdFastRegion::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

bool NdFastRegion::registered() const {
  MutexLock lock(mutex_);
  return current_ != nullptr;
}

void NdFastRegion::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

bool NdFastRegion::CanRegister() const {
  MutexLock lock(mutex_);
  return !retired_ && current_ == nullptr;
}

bool NdFastRegion::Register(std::unique_ptr<NdGrant> grant, RemoteToken token, uint64_t queue_pair,
                            std::shared_ptr<const void> backing) {
  {
    MutexLock lock(mutex_);
    if (!retired_ && current_ == nullptr) {
      domain_->device().CountFastRegistration(grant->owns_registration() ? NdFastEngineUsed::kDirect
                                                                         : NdFastEngineUsed::kWindowed);
      current_ = std::move(grant);
      current_token_ = token;
      bound_by_ = queue_pair;
      backing_ = std::move(backing);
      Publish();
      return true;
    }
  }
  // Before the backing is released.
  grant.reset();
  domain_->remote_tokens().Remove(token.value);
  return false;
}

void NdFastRegion::Publish() {
  domain_->local_tokens().Set(local_token_, {.range = current_->local_range(), .owner = weak_from_this()});
  domain_->remote_tokens().Set(current_token_.value, {.range = current_->remote_range(), .owner = weak_from_this()});
}

ComPtr<IND2MemoryWindow> NdFastRegion::WindowOf(uint64_t queue_pair) const {
  MutexLock lock(mutex_);
  return current_ != nullptr && bound_by_ == queue_pair ? current_->window() : ComPtr<IND2MemoryWindow>();
}

bool NdFastRegion::EndCurrent(std::shared_ptr<const void>& kept) {
  domain_->local_tokens().Set(local_token_, {});
  domain_->remote_tokens().Set(current_token_.value, {});
  if (!current_->End().ok()) {
    Publish();
    return false;
  }
  domain_->remote_tokens().Remove(current_token_.value);
  current_ = nullptr;
  bound_by_ = 0;
  kept = std::move(backing_);
  return true;
}

bool NdFastRegion::Invalidate() {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  return current_ != nullptr && EndCurrent(backing);
}

bool NdFastRegion::InvalidateToken(uint32_t token, std::optional<uint64_t> /*arrived_at*/) {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  return current_ != nullptr && (token == current_token_.value || token == local_token_) && EndCurrent(backing);
}

void NdFastRegion::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
