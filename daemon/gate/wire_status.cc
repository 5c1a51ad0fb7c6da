#include "daemon/gate/wire_status.h"

#include <string>

#include "base/status.h"
#include "daemon/wire/error_detail.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::gate {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  if (absl::IsCancelled(status)) {
    return grpc::Status::CANCELLED;  // Has no reader: the client itself cancelled.
  }
  const v1::ErrorDetail detail = wire::ToErrorDetail(status);
  const ErrorReasonRow& row = RowOf(ErrorInfoOf(status).reason);
  v1::RpcStatus envelope;
  envelope.set_code(static_cast<int>(row.code));
  envelope.set_message(detail.message());
  envelope.add_details()->PackFrom(detail);
  // abseil's and gRPC's codes are the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(row.code), detail.message(), envelope.SerializeAsString());
}

}  // namespace rnicd::gate
