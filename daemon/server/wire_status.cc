#include "daemon/server/wire_status.h"

#include "base/status.h"
#include "rnicd/v1/error.pb.h"
#include "wire/error_detail.h"

namespace rnicd::server {

rpc::Status ToWireStatus(const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) {
    return {.code = static_cast<int>(status.code())};  // A cancelled call has no reader.
  }
  const v1::ErrorDetail detail = wire::ToErrorDetail(status);
  const ErrorReasonRow& row = RowOf(ErrorInfoOf(status).reason);
  v1::RpcStatus envelope;
  envelope.set_code(static_cast<int>(row.code));
  envelope.set_message(detail.message());
  envelope.add_details()->PackFrom(detail);
  // abseil's and gRPC's codes are the same numbers.
  return {.code = static_cast<int>(row.code), .message = detail.message(), .details = envelope.SerializeAsString()};
}

}  // namespace rnicd::server
