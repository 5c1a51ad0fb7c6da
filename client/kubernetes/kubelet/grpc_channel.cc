#include "client/kubernetes/kubelet/grpc_channel.h"

#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace rnicd::kubernetes {
namespace {

bool IsPoller(absl::string_view name) { return name == "epoll1" || name == "poll" || name == "none" || name == "all"; }

grpc::ChannelArguments LocalChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A retried call could run twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The list of a node's pods has no bound.
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  return arguments;
}

}  // namespace

bool FitsUnixAddress(const std::string& path) { return !path.empty() && path.size() < sizeof(sockaddr_un::sun_path); }

std::string UnixTarget(const std::string& path) {
  return "unix:" + absl::StrReplaceAll(path, {{"%", "%25"}, {"#", "%23"}, {"?", "%3F"}});
}

std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path) {
  return grpc::CreateCustomChannel(UnixTarget(path), grpc::InsecureChannelCredentials(), LocalChannelArguments());
}

absl::Status StatusFromGrpc(const grpc::Status& status) {
  // absl took its codes from gRPC; the numbers are the same.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::Status CheckGrpcPoller() {
  const char* const wanted = std::getenv("GRPC_POLL_STRATEGY");
  if (wanted == nullptr) {
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> names = absl::StrSplit(wanted, ',');
  return std::any_of(names.begin(), names.end(), IsPoller)
             ? absl::OkStatus()
             : absl::InvalidArgumentError("GRPC_POLL_STRATEGY names no poller that gRPC has, epoll1 or poll; unset it");
}

}  // namespace rnicd::kubernetes
