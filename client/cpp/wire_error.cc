#include "client/cpp/wire_error.h"

#include <optional>

#include "client/cpp/transport_failure.h"
#include "rnicd/v1/error.pb.h"
#include "wire/error_detail.h"

namespace rnicd::inline client {
namespace {

std::optional<v1::ErrorDetail> DetailIn(const grpc::Status& status) {
  v1::RpcStatus rpc_status;
  v1::ErrorDetail detail;
  if (status.error_details().empty() || !rpc_status.ParseFromString(status.error_details())) {
    return std::nullopt;
  }
  for (const google::protobuf::Any& any : rpc_status.details()) {
    if (any.UnpackTo(&detail)) {
      return detail;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  // absl took its codes from gRPC; the numbers are the same.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::optional<v1::ErrorDetail> detail = DetailIn(status);
  return detail.has_value() ? wire::StatusFromDetail(*detail, code) : TransportFailure(code, status.error_message());
}

}  // namespace rnicd::inline client
