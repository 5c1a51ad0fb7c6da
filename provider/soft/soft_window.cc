#include "provider/soft/soft_window.h"

#include <utility>

#include "base/checked_range.h"
#include "base/status.h"
#include "provider/soft/soft_memory_region.h"

namespace rnicd::provider {

// One binding: the target of the window's key. It has its own bounds and rights; the bytes belong to the region, which
// counts the binding.
class BoundWindow final : public SoftTarget {
 public:
  BoundWindow(BindWork& work, SoftAccessor accessor, std::shared_ptr<SoftRegionMemory> region,
              std::weak_ptr<SoftWindow> owner)
      : base_(work.base),
        length_(work.length),
        rights_(work.rights),
        accessor_(accessor),
        backing_(std::move(work.backing)),
        region_(std::move(region)),
        owner_(std::move(owner)) {}
  ~BoundWindow() override { Revoke(); }

  bool Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
           Pieces& pieces) override {
    const bool allowed = (access == SoftAccess::kRemoteRead && rights_.remote_read) ||
                         (access == SoftAccess::kRemoteWrite && rights_.remote_write);
    if (!allowed || accessor.domain != accessor_.domain || accessor.queue_pair != accessor_.queue_pair ||
        !CheckedRange::Make(base_.value, length_)->Contains(address.value, length) || !gate_.Enter()) {
      return false;
    }
    const bool pinned = region_->Pin(accessor, SoftAccess::kThroughWindow, address, length, pieces);
    if (!pinned) {
      gate_.Leave();
    }
    return pinned;
  }
  void Unpin() override {
    region_->Unpin();
    gate_.Leave();
  }
  // A window of type 2 belongs to the queue pair that bound it: no other connection of its owner can end it.
  bool InvalidateByToken(const SoftAccessor& accessor) override {
    const std::shared_ptr<SoftWindow> owner = owner_.lock();
    const bool may = accessor.domain == accessor_.domain && accessor.queue_pair == accessor_.queue_pair;
    return may && owner != nullptr && owner->Invalidate(this);
  }
  // True for the first caller of Revoke.
  bool Revoke() {
    const bool first = gate_.Close();
    if (first) {
      region_->RemoveWindow();
      backing_.reset();
    }
    return first;
  }

 private:
  const VirtualAddress base_;
  const uint64_t length_;
  const AccessRights rights_;
  const SoftAccessor accessor_;
  std::shared_ptr<const void> backing_;
  const std::shared_ptr<SoftRegionMemory> region_;
  const std::weak_ptr<SoftWindow> owner_;
  PinGate gate_;
};

absl::StatusOr<std::shared_ptr<SoftWindow>> SoftWindow::Create(std::shared_ptr<SoftNic> nic, uint64_t domain) {
  RNICD_ASSIGN_OR_RETURN(const SoftKeyTable::Keys keys, nic->keys().Insert(nullptr));
  return std::shared_ptr<SoftWindow>(new SoftWindow(std::move(nic), domain, keys));
}

SoftWindow::SoftWindow(std::shared_ptr<SoftNic> nic, uint64_t domain, SoftKeyTable::Keys keys)
    : domain_(domain), holder_(std::move(nic), keys) {}

SoftWindow::~SoftWindow() = default;

RemoteToken SoftWindow::remote_token() const { return holder_.remote_token(); }

RemoteToken SoftWindow::IssueToken() { return holder_.IssueToken(); }

bool SoftWindow::Bind(BindWork& work, RemoteToken token, uint64_t queue_pair) {
  std::shared_ptr<SoftRegionMemory> region = static_cast<SoftMemoryRegion&>(*work.region).memory();
  const bool bound = holder_.Set(token, [&]() -> std::shared_ptr<BoundWindow> {
    if (region == nullptr || !region->AddWindow()) {
      return nullptr;
    }
    return std::make_shared<BoundWindow>(work, SoftAccessor{.domain = domain_, .queue_pair = queue_pair},
                                         std::move(region), weak_from_this());
  });
  if (bound) {
    // Release the region now: a request that is done but not yet reported must not keep the registration.
    work.region.reset();
  }
  return bound;
}

bool SoftWindow::Invalidate(const BoundWindow* only) { return holder_.Invalidate(only); }

void SoftWindow::Retire() { holder_.Retire(); }

}  // namespace rnicd::provider
