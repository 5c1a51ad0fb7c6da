#include "provider/soft/soft_fast_region.h"

#include <atomic>
#include <new>

#include "base/status.h"

namespace rnicd::provider {

// One block of memory that is used again, for objects of one type. Counts its users itself, because an allocator is
// copied many times for each object, and a shared pointer would count every copy.
// Lifetime: until its maker and the last object in a block of it are gone.
// Threads:  safe.
class SpareBlock {
 public:
  SpareBlock() = default;
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;

  void* Take(size_t bytes) {
    users_.fetch_add(1, std::memory_order_relaxed);
    void* const block = block_.exchange(nullptr);
    return block != nullptr ? block : ::operator new(bytes);
  }
  void Put(void* block) {
    void* none = nullptr;
    if (!block_.compare_exchange_strong(none, block)) {
      ::operator delete(block);
    }
    Leave();
  }
  void Leave() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete this;
    }
  }

 private:
  ~SpareBlock() { ::operator delete(block_.load()); }

  std::atomic<void*> block_ = nullptr;
  // The maker, and the objects.
  std::atomic<uint64_t> users_ = 1;
};

void SpareBlockLeaver::operator()(SpareBlock* spare) const { spare->Leave(); }

namespace {

template <typename Object>
class SpareAllocator {
 public:
  using value_type = Object;
  explicit SpareAllocator(SpareBlock& spare) : spare_(&spare) {}
  template <typename Other>
  explicit SpareAllocator(const SpareAllocator<Other>& other) : spare_(&other.spare()) {}

  Object* allocate(size_t count) { return static_cast<Object*>(spare_->Take(count * sizeof(Object))); }
  void deallocate(Object* block, size_t /*count*/) { spare_->Put(block); }
  SpareBlock& spare() const { return *spare_; }

 private:
  SpareBlock* spare_;
};

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
    : domain_(domain), spare_(new SpareBlock()), holder_(std::move(nic), keys) {}

SoftFastRegion::~SoftFastRegion() = default;

bool SoftFastRegion::Register(FastRegisterWork& work, RemoteToken token) {
  const bool registered = holder_.Set(token, [&] {
    return std::allocate_shared<FastRegistration>(SpareAllocator<FastRegistration>(*spare_),
                                                  SoftRegionMemory::Shape{.domain = domain_,
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
