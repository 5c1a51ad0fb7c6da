#include "client/ctl/trials/pingpong_message.h"

#include <limits>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "client/ctl/output/output.h"

namespace rnicd::ctl {
namespace {

// Raised when a message changes. Its key says whose message this is.
constexpr char kVersionKey[] = "rnicctl_pingpong";
constexpr uint64_t kVersion = 1;
constexpr size_t kAddressBytesMax = 64;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError("the peer's message is invalid: " + what);
}

absl::StatusOr<uint64_t> NumberOf(const Json& message, const char* key, uint64_t min, uint64_t max) {
  const auto found = message.find(key);
  const bool number = found != message.end() && found->is_number_unsigned();
  if (!number || found->get<uint64_t>() < min || found->get<uint64_t>() > max) {
    return Malformed("'" + std::string(key) + "' is not a number from " + std::to_string(min) + " to " +
                     std::to_string(max));
  }
  return found->get<uint64_t>();
}

absl::StatusOr<Json> ParsePingpong(std::string_view line) {
  Json message = Json::parse(line, nullptr, false);
  if (!message.is_object()) {
    return Malformed("it is not a JSON object");
  }
  RNICD_ASSIGN_OR_RETURN(const uint64_t version,
                         NumberOf(message, kVersionKey, 1, std::numeric_limits<uint32_t>::max()));
  if (version != kVersion) {
    return absl::FailedPreconditionError("the peer speaks version " + std::to_string(version) +
                                         " of pingpong, and this rnicctl version " + std::to_string(kVersion));
  }
  return message;
}

absl::StatusOr<std::string> QueuePairOf(const Json& message) {
  const auto found = message.find("queue_pair");
  std::string address;
  if (found == message.end() || !found->is_string() ||
      !absl::Base64Unescape(found->get_ref<const std::string&>(), &address) || address.empty() ||
      address.size() > kAddressBytesMax) {
    return Malformed("'queue_pair' is not the Base64 of 1 to " + std::to_string(kAddressBytesMax) + " bytes");
  }
  return address;
}

std::string PingpongLine(const Json& message) { return message.dump() + "\n"; }

}  // namespace

std::string PingpongHelloLine(const PingpongHello& hello) {
  Json message = {{kVersionKey, kVersion}, {"queue_pair", absl::Base64Escape(hello.queue_pair)}};
  if (hello.offer.has_value()) {
    message["base_address"] = hello.offer->memory.address.value;
    message["remote_token"] = hello.offer->memory.token.value;
    message["bytes"] = hello.offer->bytes;
  }
  return PingpongLine(message);
}

absl::StatusOr<PingpongHello> ParsePingpongHello(std::string_view line, bool with_offer) {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  RNICD_ASSIGN_OR_RETURN(const Json message, ParsePingpong(line));
  PingpongHello hello;
  RNICD_ASSIGN_OR_RETURN(hello.queue_pair, QueuePairOf(message));
  if (with_offer) {
    RNICD_ASSIGN_OR_RETURN(const uint64_t address, NumberOf(message, "base_address", 0, kAny));
    RNICD_ASSIGN_OR_RETURN(const uint64_t token,
                           NumberOf(message, "remote_token", 0, std::numeric_limits<uint32_t>::max()));
    RNICD_ASSIGN_OR_RETURN(const uint64_t bytes, NumberOf(message, "bytes", 1, kAny));
    hello.offer =
        PingpongOffer{.memory = {.address = {address}, .token = {static_cast<uint32_t>(token)}}, .bytes = bytes};
  }
  return hello;
}

std::string PingpongSeedLine(uint32_t seed) { return PingpongLine({{kVersionKey, kVersion}, {"seed", seed}}); }

absl::StatusOr<uint32_t> ParsePingpongSeed(std::string_view line) {
  RNICD_ASSIGN_OR_RETURN(const Json message, ParsePingpong(line));
  RNICD_ASSIGN_OR_RETURN(const uint64_t seed, NumberOf(message, "seed", 0, std::numeric_limits<uint32_t>::max()));
  return static_cast<uint32_t>(seed);
}

}  // namespace rnicd::ctl
