#include "daemon/door/places.h"

namespace rnicd::door {

std::shared_ptr<void> Places::Take(const std::string& owner) {
  {
    MutexLock lock(mutex_);
    uint64_t& of_owner = taken_by_owner_[owner];
    if (IsFullNow() || (limit_of_owner_ != 0 && of_owner >= limit_of_owner_)) {
      if (of_owner == 0) {
        taken_by_owner_.erase(owner);
      }
      return nullptr;
    }
    ++taken_;
    ++of_owner;
  }
  return {this, [self = shared_from_this(), owner](void*) { self->Return(owner); }};
}

bool Places::IsFull() const {
  MutexLock lock(mutex_);
  return IsFullNow();
}

void Places::Return(const std::string& owner) {
  MutexLock lock(mutex_);
  --taken_;
  const auto found = taken_by_owner_.find(owner);
  if (--found->second == 0) {
    taken_by_owner_.erase(found);
  }
}

}  // namespace rnicd::door
