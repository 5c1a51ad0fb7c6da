#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/error_reason.h"
#include "base/ndk/network_address.h"
#include "provider/api/connection.h"

namespace rnicd::provider {

// What one end of a connection tells the other, in this daemon or over a link to another one.
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
  // The link that it travels by; 0: within this daemon. Not on the wire.
  uint64_t link = 0;
};

// A queue pair of another daemon, as this one finds it: its number there, and the link. Those of this daemon have the
// number alone, so that no other daemon can name one.
struct SoftRemotePair {
  uint64_t link = 0;
  uint64_t number = 0;

  std::string ToAddress() const {
    std::string address(sizeof(SoftRemotePair), '\0');
    std::memcpy(address.data(), this, sizeof(SoftRemotePair));
    return address;
  }
  // Empty for an address of this daemon, and for none at all.
  static std::optional<SoftRemotePair> FromAddress(std::string_view address) {
    SoftRemotePair pair;
    if (address.size() != sizeof(pair)) {
      return std::nullopt;
    }
    std::memcpy(&pair, address.data(), sizeof(pair));
    return pair;
  }
  friend bool operator==(const SoftRemotePair&, const SoftRemotePair&) = default;
};

// The address of the message's queue pair here.
inline std::string AddressOfPair(const SoftMessage& message) {
  SoftRemotePair pair{.link = message.link};
  if (message.link == 0 || message.queue_pair.size() != sizeof(pair.number)) {
    return message.queue_pair;
  }
  std::memcpy(&pair.number, message.queue_pair.data(), sizeof(pair.number));
  return pair.ToAddress();
}

// The number of the other end. The active end draws its number, which is even.
inline uint64_t PeerOf(uint64_t connector) { return connector ^ 1; }

}  // namespace rnicd::provider
