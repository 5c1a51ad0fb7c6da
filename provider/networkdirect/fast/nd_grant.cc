#include "provider/networkdirect/fast/nd_grant.h"

#include <utility>

#include "base/status.h"
#include "provider/engine/byte_runs.h"
#include "provider/networkdirect/card/nd_status.h"
#include "provider/networkdirect/memory/nd_mappings.h"

namespace rnicd::provider {

absl::StatusOr<std::unique_ptr<NdGrant>> NdGrant::Register(const std::shared_ptr<NdDomain>& domain,
                                                           const Shape& shape) {
  std::unique_ptr<NdGrant> grant(new NdGrant(domain));
  RNICD_ASSIGN_OR_RETURN(grant->own_, NdRegistration::Make(domain, shape.runs, NdAccessFlags(shape.rights)));
  grant->range_ = grant->own_->RangeAt(shape.base, shape.rights);
  return grant;
}

absl::StatusOr<std::unique_ptr<NdGrant>> NdGrant::OverRegistration(const std::shared_ptr<NdDomain>& domain,
                                                                   const NdRegistration& registration,
                                                                   const Shape& shape, bool connected) {
  const std::vector<std::span<std::byte>> merged = JoinRuns(shape.runs);
  IND2MemoryRegion* const region = merged.size() == 1 ? registration.RegionOf(merged.front()) : nullptr;
  if (region == nullptr || (shape.is_remote() && !connected)) {
    return nullptr;
  }
  std::unique_ptr<NdGrant> grant(new NdGrant(domain));
  region->AddRef();
  grant->region_ = ComPtr<IND2MemoryRegion>(region);
  const CardSegment segment{.address = reinterpret_cast<uint64_t>(merged.front().data()),
                            .length = merged.front().size(),
                            .local_token = region->GetLocalToken()};
  grant->range_ = std::make_shared<const CardRange>(
      CardRange{.base = shape.base, .length = shape.length, .rights = shape.rights, .segments = {segment}});
  if (!shape.is_remote()) {
    return grant;
  }
  const HRESULT result = domain->device().Observe(
      domain->opening()->adapter().CreateMemoryWindow(kIidNd2MemoryWindow, grant->window_.out()));
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::CreateMemoryWindow");
  }
  return grant;
}

// If the mapping cannot be registered as a whole, a registration of the pages alone may succeed.
absl::StatusOr<std::unique_ptr<NdGrant>> NdGrant::ForFastRegister(const std::shared_ptr<NdDomain>& domain,
                                                                  const Shape& shape, bool connected) {
  const std::vector<std::span<std::byte>> merged = JoinRuns(shape.runs);
  const bool may_share = domain->node().options.fast_engine == NdFastEngine::kAuto && merged.size() == 1 &&
                         (connected || !shape.is_remote());
  const std::shared_ptr<NdMappedRun> run = may_share ? domain->mappings().Find(merged.front()) : nullptr;
  if (run != nullptr) {
    absl::StatusOr<std::shared_ptr<const NdRegistration>> mapped = run->RegisteredIn(domain);
    if (mapped.ok()) {
      RNICD_ASSIGN_OR_RETURN(std::unique_ptr<NdGrant> grant, OverRegistration(domain, **mapped, shape, connected));
      if (grant != nullptr) {
        grant->shared_ = *std::move(mapped);
        return grant;
      }
    }
  }
  return Register(domain, shape);
}

// A window without rights grants nothing, and the card cannot bind one: a registration without remote rights does too.
absl::StatusOr<std::unique_ptr<NdGrant>> NdGrant::ForBind(const std::shared_ptr<NdDomain>& domain,
                                                          const NdRegistration& registration, const Shape& shape,
                                                          bool connected) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<NdGrant> grant, OverRegistration(domain, registration, shape, connected));
  return grant != nullptr ? std::move(grant) : Register(domain, shape);
}

NdGrant::~NdGrant() { End().IgnoreError(); }

HRESULT NdGrant::Bind(IND2QueuePair& queue_pair, void* context) {
  const ULONG flags =
      (range_->rights.remote_read ? kNdOpAllowRead : 0) | (range_->rights.remote_write ? kNdOpAllowWrite : 0);
  const CardSegment& segment = range_->segments.front();
  return domain_->device().Observe(queue_pair.Bind(
      context, region_.get(), window_.get(), reinterpret_cast<const void*>(segment.address), segment.length, flags));
}

std::shared_ptr<const CardRange> NdGrant::remote_range() const {
  if (window_.get() == nullptr) {
    return range_;
  }
  CardRange range = *range_;
  range.segments.front().remote_token = window_->GetRemoteToken();
  return std::make_shared<const CardRange>(std::move(range));
}

// The last reference to a window ends its binding.
absl::Status NdGrant::End() {
  window_ = {};
  region_ = {};
  shared_ = nullptr;
  return own_ != nullptr ? own_->End() : absl::OkStatus();
}

NdGrantHolder::NdGrantHolder(std::shared_ptr<NdDomain> domain, bool has_local_token)
    : GrantHolder(has_local_token ? std::optional(LocalToken{domain->local_tokens().Reserve()}) : std::nullopt,
                  RemoteToken{domain->remote_tokens().Reserve()}),
      domain_(std::move(domain)),
      first_token_(issued()) {}

NdGrantHolder::~NdGrantHolder() {
  RetireForGood();
  if (local_token_.has_value()) {
    domain_->local_tokens().Remove(local_token_->value);
  }
  domain_->remote_tokens().Remove(first_token_.value);
}

void NdGrantHolder::Publish(const EngineGrant& grant, RemoteToken token) {
  const auto& own = static_cast<const NdGrant&>(grant);
  if (local_token_.has_value()) {
    domain_->local_tokens().Set(local_token_->value, {.range = own.local_range(), .owner = weak_from_this()});
  }
  domain_->remote_tokens().Set(token.value, {.range = own.remote_range(), .owner = weak_from_this()});
}

void NdGrantHolder::Suspend(RemoteToken token) {
  if (local_token_.has_value()) {
    domain_->local_tokens().Set(local_token_->value, {});
  }
  domain_->remote_tokens().Set(token.value, {});
}

ComPtr<IND2MemoryWindow> NdGrantHolder::WindowOf(uint64_t queue_pair) const {
  MutexLock lock(mutex_);
  const auto* const grant = static_cast<const NdGrant*>(GrantBoundBy(queue_pair));
  return grant != nullptr ? grant->window() : ComPtr<IND2MemoryWindow>();
}

}  // namespace rnicd::provider
