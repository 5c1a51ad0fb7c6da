#pragma once

#include "absl/status/statusor.h"
#include "daemon/core/connection/connection_arguments.h"
#include "rnicd/v1/connection_service.pb.h"
#include "wire/network_address.h"

// Conversions of connections.
namespace rnicd::service {

// Errors: ADDRESS_INVALID, FIELD_OUT_OF_RANGE, with the fields of `local` and `peer`.
absl::StatusOr<core::LocalAddress> LocalFromWire(const v1::NetworkAddress& message);
absl::StatusOr<NetworkAddress> PeerFromWire(const v1::NetworkAddress& message);

v1::ConnectionState ToWire(core::ConnectorState state);

}  // namespace rnicd::service
