#include "tests/simulation/model/keys.h"

#include <algorithm>

#include "base/ndk/adapter_info.h"

namespace rnicd::simulation {

bool Target::Allows(Access access) const {
  switch (access) {
    case Access::kLocalRead:
      return region == nullptr;
    case Access::kLocalWrite:
      return region == nullptr && rights.local_write;
    case Access::kReadSink:
      return region == nullptr && rights.local_write && rights.read_sink;
    case Access::kRemoteRead:
      return rights.remote_read;
    case Access::kRemoteWrite:
      return rights.remote_write;
  }
  return false;
}

void Target::Append(uint64_t address, uint64_t size, Pieces& pinned) const {
  uint64_t skip = address - base.value;
  for (const Piece& piece : pieces) {
    if (skip >= piece.length) {
      skip -= piece.length;
      continue;
    }
    const uint64_t count = std::min(piece.length - skip, size);
    if (count > 0) {
      pinned.push_back({.memory = piece.memory, .offset = piece.offset + skip, .length = count});
    }
    size -= count;
    skip = 0;
  }
}

bool Target::Pin(uint64_t from_domain, uint64_t from_pair, Access access, uint64_t address, uint64_t size,
                 Pieces& pinned) const {
  const bool inside =
      address >= base.value && address - base.value <= length && size <= length - (address - base.value);
  if (!alive || from_domain != domain || !Allows(access) || !inside) {
    return false;
  }
  if (region == nullptr) {
    Append(address, size, pinned);
    return true;
  }
  if (from_pair != through || !region->alive) {
    return false;
  }
  region->Append(address, size, pinned);
  return true;
}

AccessRights Nic::Resolve(AccessRights rights) const {
  rights.read_sink = rights.read_sink || (flags & kAdapterFlagReadSinkNotRequired) != 0;
  return rights;
}

void Nic::Insert(const std::shared_ptr<Target>& target) {
  if (target->region == nullptr) {
    local[target->local.value] = target;
  }
  remote[target->remote.value] = target;
}

void Nic::Erase(Target& target) {
  target.alive = false;
  remote.erase(target.remote.value);
  if (target.region != nullptr) {
    --target.region->windows;
  } else {
    local.erase(target.local.value);
  }
  target.backing = nullptr;
  target.hold = nullptr;
}

std::shared_ptr<Target> Nic::Find(RemoteToken token) const {
  const auto found = remote.find(token.value);
  return found != remote.end() ? found->second : nullptr;
}

std::shared_ptr<Target> Nic::Find(LocalToken token) const {
  const auto found = local.find(token.value);
  return found != local.end() ? found->second : nullptr;
}

bool Key::Activate(std::shared_ptr<Target> target) {
  if (retired_ || active()) {
    return false;
  }
  current_ = std::move(target);
  if (current_->region != nullptr) {
    ++current_->region->windows;
  }
  nic_.Insert(current_);
  return true;
}

bool Key::Invalidate() {
  if (!active()) {
    return false;
  }
  const std::shared_ptr<Target> former = std::move(current_);
  current_ = nullptr;
  nic_.Erase(*former);
  return true;
}

}  // namespace rnicd::simulation
