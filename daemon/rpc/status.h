#pragma once

#include <string>

namespace rnicd::rpc {

// How a call ended, as gRPC's trailers say it.
struct Status {
  // A number of gRPC's status codes, which are abseil's; 0 is success.
  int code = 0;
  // UTF-8, for people.
  std::string message;
  // A serialized google.rpc.Status for grpc-status-details-bin; empty for none.
  std::string details;
};

}  // namespace rnicd::rpc
