#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/secrets/secret.h"
#include "daemon/rpc/bounds/budget.h"
#include "daemon/rpc/bounds/limits.h"

namespace rnicd::rpc {

// Why the wire refuses a call before its handler runs.
struct Refusal {
  enum Reason : uint8_t {
    // The message is larger than Limits::message_bytes_max.
    kMessageTooLarge,
    // A budget has no room for the message.
    kOverBudget,
    // The message is compressed.
    kCompressed,
    // The request has no message, a second one, or ends inside of it.
    kMessageCount,
    // The request did not arrive whole in time.
    kIncomplete,
    // grpc-timeout is not a timeout.
    kTimeoutMalformed,
    // The request does not carry the secret of its connection.
    kSecretMissing,
  };

  Reason reason;
  // What was too much; 0 where nothing is counted.
  uint64_t bytes = 0;
};

// The header in which a request proves that it comes from the holder of its connection's secret. It is read here and
// kept nowhere.
inline constexpr std::string_view kSecretHeader = "authorization";

// True for "Bearer " and the secret. Takes as long for a wrong secret as for the right one.
// Source: RFC 6750, section 2.1.
bool IsBearerOf(const SecretDigest& secret, std::string_view value);

// One request as it arrives: its header fields, of which those are kept that a call needs, then a single message, whose
// length is charged before a byte of it is kept. Once it is refused nothing more may be added.
// Source: gRPC over HTTP2, "Requests" and "Length-Prefixed-Message".
class IncomingRequest {
 public:
  // `charge` is what the stream costs.
  IncomingRequest(Instant began, BudgetCharge charge) : began_(began), charge_(std::move(charge)) {}

  // False when the fields are more, or have more bytes, than `limits` allows. `secret` is the connection's; the last
  // field that shows one counts.
  bool AddHeader(std::string_view name, std::string_view value, const Limits& limits,
                 const std::optional<SecretDigest>& secret);
  // The HTTP status of a request that is not gRPC at all: 405 for another method than POST, 415 for another content
  // type. Empty for gRPC.
  std::optional<int> NotGrpc() const;
  // What a request with these headers is refused for.
  std::optional<Refusal> CheckHeaders(bool needs_secret) const;
  std::optional<Refusal> AddData(std::string_view bytes, const Limits& limits);
  // The client has sent all of it.
  std::optional<Refusal> End();

  bool ended() const { return ended_; }
  Instant began() const { return began_; }
  // When the client gives the call up; empty when it does not say.
  std::optional<Instant> deadline() const {
    return timeout_.has_value() ? std::optional(began_ + *timeout_) : std::nullopt;
  }
  uint32_t message_bytes() const { return length_; }
  // Frees what has arrived of the message, but not its charge.
  void DropMessage() { std::string().swap(message_); }

  // Empty for a path that is longer than any method's.
  std::string TakePath() { return std::move(path_); }
  std::string TakeMessage() { return std::move(message_); }
  BudgetCharge TakeCharge() { return std::move(charge_); }

 private:
  std::optional<Refusal> AcceptLength(const Limits& limits);

  const Instant began_;
  BudgetCharge charge_;
  uint32_t fields_ = 0;
  uint64_t field_bytes_ = 0;
  bool is_post_ = false;
  bool is_grpc_ = false;
  // True when the request has shown the connection's secret.
  bool proven_ = false;
  bool has_timeout_ = false;
  // Empty when it is malformed.
  std::optional<std::chrono::nanoseconds> timeout_;
  std::string path_;
  std::string prefix_;
  uint32_t length_ = 0;
  std::string message_;
  bool ended_ = false;
};

}  // namespace rnicd::rpc
