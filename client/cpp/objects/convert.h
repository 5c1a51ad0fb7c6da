#pragma once

#include "client/cpp/client.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// From the wire to types that only this library has; wire/ converts those that it shares with the daemon.
AdapterSummary FromWire(const v1::AdapterSummary& adapter);
SessionUse FromWire(const v1::GetSessionResponse& session);

}  // namespace rnicd::inline client
