#pragma once

#include <string>

#include "grpcpp/support/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::test {

// The decoded result of one call.
struct CallOutcome {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  // True if the failure carried an ErrorDetail, which is then in `detail`.
  bool has_detail = false;
  v1::ErrorDetail detail;

  bool ok() const { return code == grpc::StatusCode::OK; }
};

template <typename Response>
struct CallResult : CallOutcome {
  Response response;
};

// Reads RpcStatus out of the trailer, as any rich-error helper does.
CallOutcome OutcomeOf(const grpc::Status& status);

}  // namespace rnicd::test
