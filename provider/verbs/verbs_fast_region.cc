#include "provider/verbs/verbs_fast_region.h"

#include <array>
#include <utility>

#include "base/status.h"
#include "provider/verbs/prepared_request.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<Registration>> RegisterPlaceholder(const std::shared_ptr<VerbsDomain>& domain) {
  const std::array<std::span<std::byte>, 1> page = {PlaceholderPage()};
  const VirtualAddress base{reinterpret_cast<uint64_t>(page.front().data())};
  return Registration::Make(domain, base, page, /*access=*/0);
}

absl::StatusOr<std::shared_ptr<GrantFastRegion>> GrantFastRegion::Create(std::shared_ptr<VerbsDomain> domain) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> placeholder, RegisterPlaceholder(domain));
  return std::shared_ptr<GrantFastRegion>(new GrantFastRegion(std::move(domain), std::move(placeholder)));
}

GrantFastRegion::GrantFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder)
    : domain_(std::move(domain)), placeholder_(std::move(placeholder)), issued_{placeholder_->lkey()} {}

GrantFastRegion::~GrantFastRegion() { Retire(); }

RemoteToken GrantFastRegion::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

bool GrantFastRegion::registered() const {
  MutexLock lock(mutex_);
  return current_ != nullptr;
}

absl::Status GrantFastRegion::Prepare(const FastRegisterWork& work, PreparedRequest& prepared) {
  const Grant::Shape shape{.base = work.base, .length = work.length, .rights = work.rights, .runs = work.runs};
  RNICD_ASSIGN_OR_RETURN(prepared.grant, domain_->registers_over_windows() ? Grant::RegisterForWindow(domain_, shape)
                                                                           : Grant::Register(domain_, shape));
  return absl::OkStatus();
}

void GrantFastRegion::Issue(RemoteToken token) {
  MutexLock lock(mutex_);
  issued_ = token;
}

bool GrantFastRegion::CanRegister() const {
  MutexLock lock(mutex_);
  return !retired_ && current_ == nullptr;
}

bool GrantFastRegion::Register(std::unique_ptr<Grant> grant, std::shared_ptr<const void> backing) {
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

bool GrantFastRegion::EndCurrent(std::shared_ptr<const void>& kept) {
  if (!current_->End().ok()) {
    return false;
  }
  domain_->RemoveLocal(local_token().value);
  domain_->RemoveRemote(current_->token());
  current_ = nullptr;
  kept = std::move(backing_);
  return true;
}

bool GrantFastRegion::Invalidate() {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  if (current_ == nullptr) {
    return false;
  }
  return EndCurrent(backing);
}

bool GrantFastRegion::InvalidateToken(uint32_t token, std::optional<uint64_t> /*arrived_at*/) {
  std::shared_ptr<const void> backing;
  MutexLock lock(mutex_);
  if (current_ == nullptr || (token != current_->token() && token != local_token().value)) {
    return false;
  }
  return EndCurrent(backing);
}

void GrantFastRegion::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
