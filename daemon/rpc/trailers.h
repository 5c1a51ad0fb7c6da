#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/rpc/status.h"

namespace rnicd::rpc {

using HeaderField = std::pair<std::string, std::string>;

// grpc-status, grpc-message and grpc-status-details-bin of a status; the latter two only where they say something.
// Source: gRPC over HTTP2, "Responses".
std::vector<HeaderField> TrailersOf(const Status& status);

// Text in the form of grpc-message: what is not printable ASCII, and "%", as %XX.
std::string PercentEncoded(std::string_view text);

}  // namespace rnicd::rpc
