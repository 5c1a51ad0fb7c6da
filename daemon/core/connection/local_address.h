#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/lease.h"

namespace rnicd::core {

// What an address is taken for: listeners may only be where the policy lets them.
enum class Purpose : uint8_t { kListen, kConnect };

// Takes an address and port of the adapter. `use` begins to use it; where another program of the machine has a port
// that was chosen here, a few others are tried. Errors: ADDRESS_INVALID, ADDRESS_NOT_PERMITTED, ADDRESS_IN_USE,
// PORTS_EXHAUSTED; DEVICE_NOT_CAPABLE; those of `use`.
absl::Status TakeLocalAddress(AddressBook& book, const Lease& lease, Adapter& adapter, const LocalAddress& wanted,
                              Purpose purpose, const std::function<absl::Status(AddressBook::Claim)>& use);

// The first address of the adapter from which such a peer can be reached: IPv4 from IPv4.
std::optional<IpAddress> AddressToReach(Adapter& adapter, const IpAddress& peer);

}  // namespace rnicd::core
