#include "client/cpp/wire_error.h"

#include <algorithm>
#include <optional>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

ErrorInfo InfoFrom(const v1::ErrorDetail& detail) {
  return ErrorInfo{.reason = static_cast<ErrorReason>(detail.reason()),
                   .field = detail.field(),
                   .limit = detail.limit(),
                   .used = detail.used(),
                   .requested = detail.requested()};
}

bool IsKnown(ErrorReason reason) {
  const auto rows = AllErrorReasons();
  return std::any_of(rows.begin(), rows.end(), [reason](const ErrorReasonRow& row) { return row.reason == reason; });
}

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

absl::Status StatusFromDetail(const v1::ErrorDetail& detail, absl::StatusCode code_if_unknown) {
  const ErrorInfo info = InfoFrom(detail);
  const absl::Status made = MakeError(info);
  // The daemon's text may be more specific than the reason's.
  absl::Status status(IsKnown(info.reason) ? made.code() : code_if_unknown,
                      detail.message().empty() ? made.message() : absl::string_view(detail.message()));
  made.ForEachPayload(
      [&status](absl::string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  // absl took its codes from gRPC; the numbers are the same.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::optional<v1::ErrorDetail> detail = DetailIn(status);
  return detail.has_value() ? StatusFromDetail(*detail, code) : TransportFailure(code, status.error_message());
}

}  // namespace rnicd::inline client
