#include "provider/engine/invalidatable.h"

#include <span>

namespace rnicd::provider {

void BoundWindows::Insert(const std::shared_ptr<Invalidatable>& owner, uint32_t token) {
  MutexLock lock(mutex_);
  bound_[owner.get()] = {.owner = owner, .token = token};
  if (bound_.size() >= prune_at_) {
    std::erase_if(bound_, [](const auto& entry) { return entry.second.owner.expired(); });
    prune_at_ = 2 * bound_.size() + 64;
  }
}

void BoundWindows::End() {
  std::map<const Invalidatable*, Bound> bound;
  {
    MutexLock lock(mutex_);
    bound.swap(bound_);
  }
  for (const auto& [key, each] : bound) {
    if (const std::shared_ptr<Invalidatable> owner = each.owner.lock(); owner != nullptr) {
      owner->InvalidateToken(each.token, std::nullopt);
    }
  }
}

std::optional<LocalToken> TokenToInvalidate(const WorkRequest& request) {
  const auto* const read = std::get_if<ReadWork>(&request.work);
  const std::span<const ScatterGatherEntry> entries = request.entries();
  if (read == nullptr || !read->local_invalidate || entries.empty() || entries.front().host.data() != nullptr) {
    return std::nullopt;
  }
  return entries.front().token;
}

}  // namespace rnicd::provider
