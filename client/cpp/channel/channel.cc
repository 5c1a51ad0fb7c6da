#include "client/cpp/channel/channel.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "grpc/grpc.h"
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

bool IsPoller(absl::string_view name) { return name == "epoll1" || name == "poll" || name == "none" || name == "all"; }

}  // namespace

grpc::ChannelArguments LocalChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A dropped idle connection would end the session; a retried call could run twice.
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, std::numeric_limits<int>::max());
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  // A failed connect on this machine costs nothing, and a restarted daemon is back within a second; gRPC's default
  // would wait for up to two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  return arguments;
}

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  // absl took its codes from gRPC; the numbers are the same.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::optional<v1::ErrorDetail> detail = DetailIn(status);
  return detail.has_value() ? wire::StatusFromDetail(*detail, code) : TransportFailure(code, status.error_message());
}

absl::Status CheckGrpcPoller() {
  const char* const wanted = std::getenv("GRPC_POLL_STRATEGY");
  if (wanted == nullptr) {
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> names = absl::StrSplit(wanted, ',');
  return std::any_of(names.begin(), names.end(), IsPoller)
             ? absl::OkStatus()
             : MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "GRPC_POLL_STRATEGY"},
                                   "GRPC_POLL_STRATEGY names no poller that gRPC has, epoll1 or poll; unset it");
}

}  // namespace rnicd::inline client
