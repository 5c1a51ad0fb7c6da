#pragma once

#include <cstdint>

namespace rnicd {

// States that an owner can distinguish; a card has more. The numbers are those of the wire.
enum class QueuePairState : uint8_t {
  // Not connected yet: receives can be posted.
  kInit = 1,
  // Connect was called: everything can be posted.
  kReadyToSend = 2,
  // Disconnected, flushed, or a request failed: no request is executed any more.
  kError = 3,
};

// Sizes that a queue pair is created with. Each is at most the adapter's, in NdkAdapterInfo.
struct QueuePairLimits {
  // Maximum of outstanding receives.
  uint32_t receive_depth = 0;
  // Maximum of outstanding initiator requests.
  uint32_t initiator_depth = 0;
  // Maximum of SGEs in one receive.
  uint32_t receive_entries = 0;
  // Maximum of SGEs in one initiator request other than a read.
  uint32_t initiator_entries = 0;
  // Maximum size of one inline payload, in bytes.
  uint32_t inline_bytes = 0;
};

}  // namespace rnicd
