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
    : nic_(std::move(nic)), domain_(domain), local_(keys.local), issued_(keys.remote) {}

SoftFastRegion::~SoftFastRegion() {
  Retire();
  nic_->keys().Remove(local_);
}

RemoteToken SoftFastRegion::remote_token() const {
  MutexLock lock(mutex_);
  return issued_;
}

bool SoftFastRegion::registered() const {
  MutexLock lock(mutex_);
  return memory_ != nullptr;
}

RemoteToken SoftFastRegion::IssueToken() {
  MutexLock lock(mutex_);
  issued_ = SoftKeyTable::NextVariant(issued_);
  return issued_;
}

bool SoftFastRegion::Register(FastRegisterWork& work, RemoteToken token) {
  MutexLock lock(mutex_);
  if (retired_ || memory_ != nullptr) {
    return false;
  }
  memory_ = std::make_shared<FastRegistration>(SoftRegionMemory::Shape{.domain = domain_,
                                                                       .base = work.base,
                                                                       .length = work.length,
                                                                       .rights = nic_->Resolve(work.rights),
                                                                       .runs = work.runs,
                                                                       .backing = std::move(work.backing)},
                                               weak_from_this());
  nic_->keys().Replace({.local = local_, .remote = token}, memory_);
  nic_->CountFastRegistration();
  return true;
}

// memory_ stays set until the memory is revoked, so that a second caller, Retire in particular, waits for it too.
bool SoftFastRegion::Invalidate(const SoftRegionMemory* only) {
  std::shared_ptr<SoftRegionMemory> memory;
  {
    MutexLock lock(mutex_);
    if (memory_ == nullptr || (only != nullptr && memory_.get() != only)) {
      return false;
    }
    memory = memory_;
    nic_->keys().Replace({.local = local_, .remote = issued_}, nullptr);
  }
  const bool first = memory->Revoke();
  MutexLock lock(mutex_);
  if (memory_ == memory) {
    memory_ = nullptr;
  }
  return first;
}

void SoftFastRegion::Retire() {
  {
    MutexLock lock(mutex_);
    retired_ = true;
  }
  Invalidate();
}

}  // namespace rnicd::provider
