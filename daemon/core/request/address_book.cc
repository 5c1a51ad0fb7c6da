#include "daemon/core/request/address_book.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"

namespace rnicd::core {
namespace {

template <typename Map, typename Key>
auto FindIn(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

// The entry ends with the last copy of the hold.
AddressBook::Hold AddressBook::HoldUntil(std::function<void()> remove) {
  return {this, [this, remove = std::move(remove)](const void*) {
            MutexLock lock(mutex_);
            remove();
          }};
}

AddressBook::Claim AddressBook::TakeLocked(const NetworkAddress& address, uint64_t tenant) {
  holders_.emplace(address, tenant);
  return {.address = address, .hold = HoldUntil([this, address]() RNICD_REQUIRES(mutex_) { holders_.erase(address); })};
}

absl::StatusOr<AddressBook::Claim> AddressBook::Take(const NetworkAddress& wanted, std::span<const AddressRange> ports,
                                                     uint64_t tenant) {
  std::vector<Ports> any;
  std::vector<Ports> dynamic;
  for (const AddressRange& range : ports) {
    if (range.prefix.Contains(wanted.ip)) {
      any.push_back({range.first_port, range.last_port});
      if (range.last_port >= kFirstDynamicPort) {
        dynamic.push_back({std::max(range.first_port, kFirstDynamicPort), range.last_port});
      }
    }
  }
  MutexLock lock(mutex_);
  if (wanted.port != 0) {
    return holders_.contains(wanted) ? MakeError(ErrorReason::ADDRESS_IN_USE, "local")
                                     : absl::StatusOr<Claim>(TakeLocked(wanted, tenant));
  }
  std::optional<uint16_t> port = ChoosePort(wanted.ip, dynamic);
  if (!port.has_value()) {
    port = ChoosePort(wanted.ip, any);
  }
  if (!port.has_value()) {
    return MakeError(ErrorReason::PORTS_EXHAUSTED, "local.port");
  }
  return TakeLocked({.ip = wanted.ip, .port = *port}, tenant);
}

// Begins at a random port, so that a peer cannot tell the next one.
std::optional<uint16_t> AddressBook::ChoosePort(const IpAddress& ip, std::span<const Ports> ports) const {
  if (ports.empty()) {
    return std::nullopt;
  }
  const uint64_t start = random_.Next();
  for (size_t index = 0; index < ports.size(); ++index) {
    const auto [first, last] = ports[(start + index) % ports.size()];
    const uint32_t count = last - first + 1;
    for (uint32_t step = 0; step < count; ++step) {
      const auto port = static_cast<uint16_t>(first + (start / ports.size() + step) % count);
      if (!holders_.contains({.ip = ip, .port = port})) {
        return port;
      }
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> AddressBook::HolderOf(const NetworkAddress& address) const {
  MutexLock lock(mutex_);
  return FindIn(holders_, address);
}

absl::StatusOr<AddressBook::Hold> AddressBook::Publish(const std::string& name, const ListenerPlace& place) {
  MutexLock lock(mutex_);
  if (!names_.emplace(name, place).second) {
    return MakeError(ErrorReason::NAME_TAKEN, "name");
  }
  return HoldUntil([this, name]() RNICD_REQUIRES(mutex_) { names_.erase(name); });
}

std::optional<ListenerPlace> AddressBook::Find(const std::string& name) const {
  MutexLock lock(mutex_);
  return FindIn(names_, name);
}

AddressBook::Hold AddressBook::AddQueuePair(std::string address, uint64_t tenant) {
  MutexLock lock(mutex_);
  queue_pairs_.insert_or_assign(address, tenant);
  return HoldUntil([this, address = std::move(address)]() RNICD_REQUIRES(mutex_) { queue_pairs_.erase(address); });
}

std::optional<uint64_t> AddressBook::TenantOfQueuePair(std::string_view address) const {
  MutexLock lock(mutex_);
  return FindIn(queue_pairs_, address);
}

}  // namespace rnicd::core
