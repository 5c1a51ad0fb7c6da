#include "client/cpp/grpc_poller.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace rnicd::inline client {
namespace {

bool IsPoller(absl::string_view name) { return name == "epoll1" || name == "poll" || name == "none" || name == "all"; }

}  // namespace

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
