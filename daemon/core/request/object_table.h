#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/strong_id.h"

namespace rnicd::core {

// Objects by id. An id is an index and a generation that starts at a random number, so that an id from another table or
// of a removed object names nothing here.
// Threads: safe. Its lock is the innermost: nothing is called and no object is destroyed under it.
template <typename Id, typename T>
class ObjectTable {
 public:
  using Entries = std::vector<std::pair<Id, std::shared_ptr<T>>>;

  // `seed`: any random number.
  explicit ObjectTable(uint64_t seed) : next_generation_(static_cast<uint32_t>(seed) | 1) {}

  Id Insert(std::shared_ptr<T> object) {
    MutexLock lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    slots_[index] = Slot{next_generation_, std::move(object)};
    // 0 would allow id 0, which must name nothing.
    next_generation_ += next_generation_ == UINT32_MAX ? 2 : 1;
    return IdOf(index);
  }

  // Null when no object has this id.
  std::shared_ptr<T> Find(Id id) const {
    MutexLock lock(mutex_);
    const Slot* slot = SlotOf(id);
    return slot != nullptr ? slot->object : nullptr;
  }

  // The object that had this id; null when none did.
  std::shared_ptr<T> Remove(Id id) {
    MutexLock lock(mutex_);
    if (SlotOf(id) == nullptr) {
      return nullptr;
    }
    const auto index = static_cast<uint32_t>(id.value);
    free_.push_back(index);
    return std::exchange(slots_[index].object, nullptr);
  }

  // Called under the table's lock: `visit` must be quick and must not call back.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    MutexLock lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.object != nullptr) {
        visit(*slot.object);
      }
    }
  }

  Entries All() const {
    MutexLock lock(mutex_);
    return AllLocked();
  }

  // Removes and returns the objects that `wanted` selects. Called under the table's lock, as `visit`.
  template <typename Wanted>
  Entries TakeIf(const Wanted& wanted) {
    MutexLock lock(mutex_);
    Entries taken;
    for (uint32_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].object != nullptr && wanted(*slots_[index].object)) {
        taken.emplace_back(IdOf(index), std::move(slots_[index].object));
        free_.push_back(index);
      }
    }
    return taken;
  }

  // Removes and returns all objects.
  Entries TakeAll() {
    return TakeIf([](const T& /*object*/) { return true; });
  }

 private:
  struct Slot {
    uint32_t generation = 0;
    std::shared_ptr<T> object;
  };

  Entries AllLocked() const RNICD_REQUIRES(mutex_) {
    Entries all;
    all.reserve(slots_.size());
    for (uint32_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].object != nullptr) {
        all.emplace_back(IdOf(index), slots_[index].object);
      }
    }
    return all;
  }

  Id IdOf(uint32_t index) const RNICD_REQUIRES(mutex_) { return Id{uint64_t{slots_[index].generation} << 32 | index}; }
  const Slot* SlotOf(Id id) const RNICD_REQUIRES(mutex_) {
    const auto index = static_cast<uint32_t>(id.value);
    if (index >= slots_.size() || slots_[index].object == nullptr || IdOf(index) != id) {
      return nullptr;
    }
    return &slots_[index];
  }

  mutable Mutex mutex_;
  std::vector<Slot> slots_ RNICD_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ RNICD_GUARDED_BY(mutex_);
  uint32_t next_generation_ RNICD_GUARDED_BY(mutex_);
};

// The object with that id.
// Errors: OBJECT_NOT_FOUND with the field that held it.
template <typename Id, typename T>
absl::StatusOr<std::shared_ptr<T>> FindIn(const ObjectTable<Id, T>& table, Id id, std::string_view field) {
  std::shared_ptr<T> found = table.Find(id);
  if (found == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, field);
  }
  return found;
}

}  // namespace rnicd::core
