#pragma once

#include <cstddef>
#include <cstdint>

namespace rnicd::fi {

// What fi_getinfo promises and the objects keep. fi_getinfo must be cheap and opens no session, so these do not depend
// on the card; but for the length of messages any card that the daemon serves has them.

// Bytes in front of each message: see message_header.h.
inline constexpr size_t kHeaderBytes = 16;
// Bytes that fi_inject takes. With the header they are one inline payload of a queue pair.
inline constexpr size_t kInjectBytesMax = 240;
// Buffers of one request. With that of the header they are the SGEs of a queue pair.
inline constexpr size_t kBuffersMax = 3;
// Bytes of a message, or of an RMA request. What is longer than the card takes is refused when it is posted; RxM sends
// messages in parts, and refuses those above this length.
inline constexpr size_t kMessageBytesMax = UINT32_MAX - kHeaderBytes;
// Requests of a transmit or a receive queue; the default, and the maximum.
inline constexpr size_t kQueueSizeDefault = 256;
inline constexpr size_t kQueueSizeMax = 4096;
// Bytes of private data of a connect, an accept and a reject.
inline constexpr size_t kConnectDataMax = 256;

}  // namespace rnicd::fi
