#pragma once

#include "absl/status/statusor.h"
#include "base/ndk/network_address.h"
#include "client/cpp/client.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/connection_service.pb.h"
#include "rnicd/v1/session_service.pb.h"
#include "wire/network_address.h"

namespace rnicd::inline client {

// From the wire to types that only this library has; wire/ converts those that it shares with the daemon.
AdapterSummary FromWire(const v1::AdapterSummary& adapter);
SessionUse FromWire(const v1::GetSessionResponse& session);
// Errors: a transport failure for what is no address.
absl::StatusOr<NetworkAddress> AddressFromWire(const v1::NetworkAddress& answered);

// The address that a request takes for its own side; "::" is the adapter's first.
template <typename Request>
void SetLocal(const NetworkAddress& local, Request* request) {
  if (local == NetworkAddress()) {
    return;
  }
  *request->mutable_local() = wire::ToWire(local);
  if (local.ip == IpAddress()) {
    request->mutable_local()->clear_address();
  }
}

}  // namespace rnicd::inline client
