#include "client/cpp/transport_failure.h"

#include <string>

#include "absl/strings/cord.h"

namespace rnicd::inline client {
namespace {

constexpr char kPayloadType[] = "rnicd/transport-failure";

}  // namespace

absl::Status TransportFailure(absl::StatusCode code, std::string_view message) {
  absl::Status status(code, "no answer from rnicd: " + std::string(message));
  status.SetPayload(kPayloadType, absl::Cord());
  return status;
}

bool IsTransportFailure(const absl::Status& status) { return status.GetPayload(kPayloadType).has_value(); }

}  // namespace rnicd::inline client
