#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace rnicd::gate {

// Code and text of the reason's row, and an RpcStatus with the ErrorDetail in the trailer.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace rnicd::gate
