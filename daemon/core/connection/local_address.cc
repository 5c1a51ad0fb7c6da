#include "daemon/core/connection/local_address.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace rnicd::core {
namespace {

// Ports of one call that other programs may have.
constexpr int kTriesForPort = 8;

absl::StatusOr<IpAddress> AddressOf(Adapter& adapter, const std::optional<IpAddress>& wanted) {
  const std::vector<IpAddress> addresses = adapter.device().addresses();
  if (addresses.empty()) {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE, "adapter_id");
  }
  if (wanted.has_value() && std::ranges::find(addresses, *wanted) == addresses.end()) {
    return MakeError(ErrorReason::ADDRESS_INVALID, "local.address");
  }
  return wanted.value_or(addresses.front());
}

std::vector<AddressRange> DynamicPorts() {
  return {{.prefix = *IpPrefix::FromText("::/0"), .first_port = kFirstDynamicPort}};
}

// Where the caller names no port, `ports` are those to choose from.
bool MayUse(const NetworkAddress& address, Purpose purpose, const ConnectionRules& rules,
            std::span<const AddressRange> ports) {
  if (address.port == 0) {
    return std::ranges::any_of(ports, [&](const AddressRange& range) { return range.prefix.Contains(address.ip); });
  }
  return (purpose == Purpose::kConnect && address.port >= kFirstDynamicPort) || rules.MayListen(address);
}

}  // namespace

absl::Status TakeLocalAddress(AddressBook& book, const Lease& lease, Adapter& adapter, const LocalAddress& wanted,
                              Purpose purpose, const std::function<absl::Status(AddressBook::Claim)>& use) {
  RNICD_ASSIGN_OR_RETURN(const IpAddress ip, AddressOf(adapter, wanted.ip));
  const std::shared_ptr<const ConnectionRules> rules = lease.tenant().connections();
  const NetworkAddress address{.ip = ip, .port = wanted.port};
  // Any dynamic port serves as the source of a connection.
  const std::vector<AddressRange> ports = purpose == Purpose::kConnect ? DynamicPorts() : rules->listen;
  if (!MayUse(address, purpose, *rules, ports)) {
    return MakeError(ErrorReason::ADDRESS_NOT_PERMITTED, "local");
  }
  std::vector<AddressBook::Claim> refused;
  while (true) {
    RNICD_ASSIGN_OR_RETURN(AddressBook::Claim claim, book.Take(address, ports, lease.tenant().number()));
    absl::Status status = use(claim);
    if (wanted.port != 0 || !FailedWith(status, ErrorReason::ADDRESS_IN_USE) || refused.size() == kTriesForPort) {
      return status;
    }
    // Kept, so that the next one is another.
    refused.push_back(std::move(claim));
  }
}

std::optional<IpAddress> AddressToReach(Adapter& adapter, const IpAddress& peer) {
  const std::vector<IpAddress> addresses = adapter.device().addresses();
  const auto found =
      std::ranges::find_if(addresses, [&](const IpAddress& own) { return own.is_ipv4() == peer.is_ipv4(); });
  return found == addresses.end() ? std::nullopt : std::optional<IpAddress>(*found);
}

}  // namespace rnicd::core
