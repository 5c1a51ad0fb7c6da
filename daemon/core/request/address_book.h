#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/network_address.h"
#include "base/secrets/random.h"
#include "daemon/core/tenant/connection_rules.h"

namespace rnicd::core {

// Ports that nobody assigns: those that are chosen where the caller names none. Source: RFC 6335, NDK_FN_LISTEN.
inline constexpr uint16_t kFirstDynamicPort = 49152;

// Where a listener of this node is found. A directory of many nodes adds which node, and which life of it, that is.
struct ListenerPlace {
  NetworkAddress address;
  // Number of the tenant that listens.
  uint64_t tenant = 0;
};

// The addresses and ports that this daemon's listeners and connections have, the names of its listeners, and the
// tenants of its queue pairs. Every entry belongs to an object that is charged, and ends with the object's hold.
// Lifetime: outlives the holds.
// Threads:  safe. Its lock is the innermost.
class AddressBook {
 public:
  // Removes an entry when it is destroyed.
  using Hold = std::shared_ptr<const void>;
  // An address and port that are held.
  struct Claim {
    NetworkAddress address;
    Hold hold;
  };

  // `random` outlives the book.
  explicit AddressBook(RandomSource& random) : random_(random) {}

  // The port of `wanted`, or one that lies in `ports`, dynamic ones first, if it has none. Errors: ADDRESS_IN_USE,
  // PORTS_EXHAUSTED.
  absl::StatusOr<Claim> Take(const NetworkAddress& wanted, std::span<const AddressRange> ports, uint64_t tenant);
  // The tenant that holds this address and port.
  std::optional<uint64_t> HolderOf(const NetworkAddress& address) const;

  // Errors: NAME_TAKEN.
  absl::StatusOr<Hold> Publish(const std::string& name, const ListenerPlace& place);
  std::optional<ListenerPlace> Find(const std::string& name) const;

  // `address` as ConnectQp takes it.
  Hold AddQueuePair(std::string address, uint64_t tenant);
  std::optional<uint64_t> TenantOfQueuePair(std::string_view address) const;

 private:
  // Ports from first to last.
  struct Ports {
    uint32_t first = 0;
    uint32_t last = 0;
  };

  std::optional<uint16_t> ChoosePort(const IpAddress& ip, std::span<const Ports> ports) const RNICD_REQUIRES(mutex_);
  Claim TakeLocked(const NetworkAddress& address, uint64_t tenant) RNICD_REQUIRES(mutex_);
  Hold HoldUntil(std::function<void()> remove);

  RandomSource& random_;
  mutable Mutex mutex_;
  std::map<NetworkAddress, uint64_t> holders_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, ListenerPlace> names_ RNICD_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t, std::less<>> queue_pairs_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
