#pragma once

#include <cstdint>

namespace rnicd {

// Operation type of a completion. The numbers are NDK's. Source: NDK_OPERATION_TYPE.
enum class OperationType : uint16_t {
  kReceive = 1,
  // Also SendAndInvalidate, at the sender.
  kSend = 2,
  kFastRegister = 4,
  kBind = 8,
  kInvalidate = 16,
  kRead = 32,
  kWrite = 64,
  kReceiveAndInvalidate = 0x8001,
};

}  // namespace rnicd
