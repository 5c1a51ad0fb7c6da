#include "provider/verbs/memory/verbs_domain.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {

std::span<std::byte> PlaceholderPage() {
  alignas(kNdkPageBytes) static std::array<std::byte, kNdkPageBytes> page;
  return page;
}

absl::StatusOr<std::shared_ptr<VerbsDomain>> VerbsDomain::Create(std::shared_ptr<VerbsContext> context) {
  RNICD_RETURN_IF_ERROR(context->device().CheckThere());
  ibv_pd* const pd = context->api().AllocPd(context->raw());
  if (pd == nullptr) {
    return VerbStatus(errno, "ibv_alloc_pd");
  }
  std::shared_ptr<VerbsDomain> domain(new VerbsDomain(std::move(context), pd));
  const std::span<std::byte> page = PlaceholderPage();
  domain->placeholder_ = domain->api().RegMr(pd, page.data(), page.size(), reinterpret_cast<uint64_t>(page.data()),
                                             /*access=*/0);
  if (domain->placeholder_ == nullptr) {
    return RegistrationStatus(errno, page.size(), ReadPinBudget());
  }
  return domain;
}

VerbsDomain::~VerbsDomain() {
  {
    MutexLock lock(mutex_);
    // The kernel does not free a domain that the module has.
    kernel_engine_.reset();
    for (ibv_mr* const mr : orphans_) {
      // What the card refuses even now ends with the context.
      api().DeregMr(mr);
      device().RemoveRegion(context_->node());
    }
  }
  if (placeholder_ != nullptr) {
    api().DeregMr(placeholder_);
  }
  api().DeallocPd(pd_);
}

absl::Status VerbsDomain::TakeForKernel() {
  MutexLock taking(taking_);
  if (kernel_engine() != nullptr) {
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<KernelEngine> engine, KernelEngine::Take(*context_, pd_));
  MutexLock lock(mutex_);
  kernel_engine_ = std::move(engine);
  return absl::OkStatus();
}

std::shared_ptr<KernelEngine> VerbsDomain::kernel_engine() const {
  MutexLock lock(mutex_);
  return kernel_engine_;
}

void VerbsDomain::Orphan(ibv_mr* mr) {
  MutexLock lock(mutex_);
  orphans_.push_back(mr);
}

void VerbsDomain::SetLocal(uint32_t token, LocalKey key) {
  MutexLock lock(mutex_);
  local_[token] = std::move(key);
}

void VerbsDomain::RemoveLocal(uint32_t token) {
  MutexLock lock(mutex_);
  local_.erase(token);
}

std::optional<LocalKey> VerbsDomain::FindLocal(uint32_t token) const {
  MutexLock lock(mutex_);
  const auto found = local_.find(token);
  return found != local_.end() ? std::optional(found->second) : std::nullopt;
}

void VerbsDomain::SetRemote(uint32_t token, std::weak_ptr<Invalidatable> owner) {
  MutexLock lock(mutex_);
  remote_[token] = std::move(owner);
}

void VerbsDomain::RemoveRemote(uint32_t token) {
  MutexLock lock(mutex_);
  remote_.erase(token);
}

bool VerbsDomain::HasRemote(uint32_t token) const {
  MutexLock lock(mutex_);
  return remote_.contains(token);
}

bool VerbsDomain::InvalidateRemote(uint32_t token, std::optional<uint64_t> arrived_at) {
  std::shared_ptr<Invalidatable> owner;
  {
    MutexLock lock(mutex_);
    const auto found = remote_.find(token);
    owner = found != remote_.end() ? found->second.lock() : nullptr;
  }
  return owner != nullptr && owner->InvalidateToken(token, arrived_at);
}

}  // namespace rnicd::provider
