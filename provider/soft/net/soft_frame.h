#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ndk/network_address.h"
#include "provider/soft/net/soft_message.h"

namespace rnicd::provider {

// What the soft cards of two daemons send each other. Tokens and addresses of memory are in here and in no log.

// Bytes of a request that travel at a time.
inline constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
// The largest frame: a piece and what says where it belongs.
inline constexpr size_t kFrameBytesMax = kPieceBytes + 256;

// Nothing; says that the daemon lives.
struct SoftPing {};

// The first frame of each side: the addresses of its cards.
struct SoftHello {
  uint32_t version = 1;
  std::vector<IpAddress> hosts;
};

// A piece of a request, for a queue pair of the receiving daemon. The next piece follows the answer to this one.
struct SoftRequest {
  enum class Kind : uint8_t { kSend, kWrite, kRead };

  Kind kind = Kind::kSend;
  // Numbers of the queue pairs; that of the request in its queue.
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t serial = 0;
  // Bytes of the whole request, and where this piece begins in them.
  uint64_t total = 0;
  uint64_t offset = 0;
  // For a write or read: where the whole begins in the memory of this token.
  uint64_t address = 0;
  uint32_t token = 0;
  // For a send.
  bool solicit = false;
  std::optional<uint32_t> invalidate;
  // Those of the piece; none of a read.
  std::string bytes;
};

// Answers a request, or says that the queue pair has ended.
struct SoftReply {
  enum class Result : uint8_t {
    // Done, with the bytes of a read.
    kDone,
    // There is no receive for it, or the queue pair is not connected yet: kAgain follows when that has changed.
    kNotReady,
    kAgain,
    // The memory refuses the access; the receive has failed. The answering side has failed.
    kRefused,
    kReceiveFailed,
    // There is no such queue pair with this peer any more. With serial 0, whatever is asked.
    kGone,
  };

  Result result = Result::kGone;
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t serial = 0;
  std::string bytes;
};

using SoftFrame = std::variant<SoftPing, SoftHello, SoftMessage, SoftRequest, SoftReply>;

// Bytes of the piece of `request`, also of a read's.
uint64_t PieceOf(uint64_t total, uint64_t offset);

std::string FrameText(const SoftFrame& frame);
// Empty for what no daemon of this version sends.
std::optional<SoftFrame> ParseFrame(std::string_view text);

}  // namespace rnicd::provider
