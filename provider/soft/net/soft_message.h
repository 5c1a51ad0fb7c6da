#pragma once

#include <cstdint>
#include <string>

#include "base/error_reason.h"
#include "base/ndk/network_address.h"
#include "provider/api/connection.h"

namespace rnicd::provider {

// What one end of a connection tells the other. It has no pointers, so it may as well come from another process.
struct SoftMessage {
  enum class Kind : uint8_t {
    // The active end asks a listener for a connection, with its offer and its queue pair.
    kRequest,
    // The passive end accepts, with its offer and its queue pair.
    kAnswer,
    // The queue pair of the active end is connected.
    kReady,
    // To the active end itself: it has sent kReady.
    kEstablished,
    // The connection is over, or is not made because of `reason`; with the private data of a rejection.
    kEnd,
  };

  Kind kind = Kind::kEnd;
  NetworkAddress from;
  NetworkAddress to;
  // The end that it is for. Of a request: the end that the listener's side makes.
  uint64_t connector = 0;
  std::string queue_pair;
  ConnectionOffer offer;
  ErrorReason reason = ErrorReason::CONNECTION_ABORTED;
};

// The number of the other end. The active end draws its number, which is even.
inline uint64_t PeerOf(uint64_t connector) { return connector ^ 1; }

}  // namespace rnicd::provider
