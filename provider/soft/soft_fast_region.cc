#include "provider/soft/soft_fast_region.h"

#include "base/status.h"

namespace rnicd::provider {
namespace {

// The memory of one fast registration; refers to its region, because a peer may invalidate it by its token.
class FastRegistration final : public SoftRegionMemory {
 public:
  FastRegistration(Shape shape, std::weak_ptr<SoftFastRegion> owner)
      : SoftRegionMemory(std::move(shape)), owner_(std::move(owner)) {}

  bool InvalidateByToken(const SoftAccessor& accessor) override {
    const std::shared_ptr<SoftFastRegion> owner = owner_.lock();
    return accessor.domain == domain() && owner != nullptr && owner->Invalidate(this);
  }

 private:
  const std::weak_ptr<SoftFastRegion> owner_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<SoftFastRegion>> SoftFastRegion::Create(std::shared_ptr<SoftNic> nic, uint64_t domain) {
  RNICD_ASSIGN_OR_RETURN(const SoftKeyTable::Keys keys, nic->keys().Insert(nullptr));
  return std::shared_ptr<SoftFastRegion>(new SoftFastRegion(std::move(nic), domain, keys));
}

SoftFastRegion::SoftFastRegion(std::shared_ptr<SoftNic> nic, uint64_t domain, SoftKeyTable::Keys keys)
    : domain_(domain), holder_(std::move(nic), keys) {}

bool SoftFastRegion::Register(FastRegisterWork& work, RemoteToken token) {
  const bool registered = holder_.Set(token, [&] {
    return std::make_shared<FastRegistration>(SoftRegionMemory::Shape{.domain = domain_,
                                                                      .base = work.base,
                                                                      .length = work.length,
                                                                      .rights = holder_.nic().Resolve(work.rights),
                                                                      .runs = work.runs,
                                                                      .backing = std::move(work.backing)},
                                              weak_from_this());
  });
  if (registered) {
    holder_.nic().CountFastRegistration();
  }
  return registered;
}

}  // namespace rnicd::provider
