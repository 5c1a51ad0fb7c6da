#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/cpp/work_chain.h"

// What the two sides of 'pingpong' tell each other over TCP: JSON objects, one a line. The peer may be anybody, so each
// field is checked before it is used.
// Errors of both parsers: kInvalidArgument with a sentence that names the field. The peer's bytes are not repeated.
namespace rnicd::ctl {

// Memory of the listener, for reads and writes of the peer.
struct PingpongOffer {
  RemoteMemory memory;
  // At least 1.
  uint64_t bytes = 0;
};

// The first message of each side.
struct PingpongHello {
  // As QueuePair::address: 1 to 64 bytes.
  std::string queue_pair;
  // Absent from the side that connects.
  std::optional<PingpongOffer> offer;
};

std::string PingpongHelloLine(const PingpongHello& hello);
// `line` is without its end. `with_offer`: the peer has to offer memory; otherwise an offer is ignored.
absl::StatusOr<PingpongHello> ParsePingpongHello(std::string_view line, bool with_offer);

// The later messages: the seed of the pattern, as of FillPattern, that the sender has put into the listener's memory,
// or has found there.
std::string PingpongSeedLine(uint32_t seed);
absl::StatusOr<uint32_t> ParsePingpongSeed(std::string_view line);

}  // namespace rnicd::ctl
