#include "provider/verbs/verbs_fast_region.h"

#include <array>
#include <utility>

#include "base/status.h"

namespace rnicd::provider {

absl::StatusOr<std::shared_ptr<VerbsFastRegion>> VerbsFastRegion::Create(std::shared_ptr<VerbsDomain> domain) {
  const std::array<std::span<std::byte>, 1> page = {PlaceholderPage()};
  const VirtualAddress base{reinterpret_cast<uint64_t>(page.front().data())};
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> placeholder,
                         Registration::Make(domain, base, page, /*access=*/0));
  return std::shared_ptr<VerbsFastRegion>(new VerbsFastRegion(std::move(domain), std::move(placeholder)));
}

VerbsFastRegion::VerbsFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder)
    : domain_(std::move(domain)), placeholder_(std::move(placeholder)), issued_{placeholder_->lkey()} {}

VerbsFastRegion::~VerbsFastRegion() { Retire(); }

RemoteToken VerbsFastRegion::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

bool VerbsFastRegion::registered() const {
  MutexLock lock(mutex_);
  return current_ != nullptr;
}

absl::StatusOr<std::unique_ptr<Grant>> VerbsFastRegion::Prepare(const FastRegisterWork& work) const {
  const Grant::Shape shape{.base = work.base, .length = work.length, .rights = work.rights, .runs = work.runs};
  return domain_->registers_over_windows() ? Grant::RegisterForWindow(domain_, shape) : Grant::Register(domain_, shape);
}

void VerbsFastRegion::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

bool VerbsFastRegion::CanRegister() const {
  MutexLock lock(mutex_);
  return !retired_ && current_ == nullptr;
}

bool VerbsFastRegion::Register(std::unique_ptr<Grant> grant, std::shared_ptr<const void> backing) {
  MutexLock lock(mutex_);
  if (retired_ || current_ != nullptr) {
    return false;
  }
  const FastEngineUsed composed = grant->composed() ? FastEngineUsed::kComposed : FastEngineUsed::kDirect;
  domain_->device().CountFastRegistration(grant->needs_bind() ? FastEngineUsed::kWindowed : composed);
  current_ = std::move(grant);
  backing_ = std::move(backing);
  domain_->SetLocal(local_token().value, {.lkey = current_->lkey(),
                                          .base = current_->base(),
                                          .length = current_->length(),
                                          .rights = current_->rights(),
                                          .owner = weak_from_this()});
  domain_->SetRemote(current_->token(), weak_from_this());
  return true;
}

bool VerbsFastRegion::EndCurrent(std::shared_ptr<const void>& kept) {
  if (!current_->End().ok()) {
    return false;
  }
  domain_->RemoveLocal(local_token().value);
  domain_->RemoveRemote(current_->token());
  current_ = nullptr;
  kept = std::move(backing_);
  return true;
}

bool VerbsFastRegion::Invalidate() {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  if (current_ == nullptr) {
    return false;
  }
  return EndCurrent(backing);
}

bool VerbsFastRegion::InvalidateToken(uint32_t token, std::optional<uint32_t> /*arrived_at*/) {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  if (current_ == nullptr || (token != current_->token() && token != local_token().value)) {
    return false;
  }
  return EndCurrent(backing);
}

void VerbsFastRegion::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
