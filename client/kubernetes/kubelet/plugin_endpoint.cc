#include "client/kubernetes/kubelet/plugin_endpoint.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/errno_status.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace rnicd::kubernetes {
namespace {

// Time for running calls to finish when the server stops; they are cancelled afterwards.
constexpr std::chrono::seconds kGrace{2};

absl::Status SocketFileError(const char* call, int error_number, const std::string& path) {
  return absl::UnavailableError(ErrnoDetail(call, error_number) + " for " + path);
}

}  // namespace

std::string NewSocketPath(const std::string& path) { return path + ".new"; }

absl::StatusOr<std::unique_ptr<PluginEndpoint>> PluginEndpoint::Serve(const std::string& path,
                                                                      const OfferedResource& resource,
                                                                      Allocator& allocator, const log::Logger& logger,
                                                                      std::function<void()> on_watch_ended) {
  std::unique_ptr<PluginEndpoint> endpoint(
      new PluginEndpoint(path, resource, allocator, logger, std::move(on_watch_ended)));
  if (absl::Status status = endpoint->Listen(); !status.ok()) {
    return status;
  }
  return endpoint;
}

PluginEndpoint::PluginEndpoint(std::string path, const OfferedResource& resource, Allocator& allocator,
                               const log::Logger& logger, std::function<void()> on_watch_ended)
    : path_(std::move(path)), service_(resource.name, *resource.board, allocator, logger, std::move(on_watch_ended)) {}

PluginEndpoint::~PluginEndpoint() {
  if (InPlace()) {
    unlink(path_.c_str());
  }
  service_.Stop();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kGrace);
    server_->Wait();
  }
}

bool PluginEndpoint::InPlace() const { return socket_.has_value() && IdentityOf(path_) == socket_; }

// gRPC listens under a temporary name, because it removes the file at its address when it shuts down: by then the final
// path may be another plugin's socket.
absl::Status PluginEndpoint::Listen() {
  const std::string new_path = NewSocketPath(path_);
  if (unlink(new_path.c_str()) != 0 && errno != ENOENT) {
    return SocketFileError("unlink", errno, new_path);
  }
  grpc::ServerBuilder builder;
  int listening = 0;
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.AddListeningPort(UnixTarget(new_path), grpc::InsecureServerCredentials(), &listening);
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || listening == 0) {
    return absl::UnavailableError("cannot listen on " + new_path);
  }
  socket_ = IdentityOf(new_path);
  if (rename(new_path.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    unlink(new_path.c_str());
    return SocketFileError("rename", error_number, path_);
  }
  return absl::OkStatus();
}

}  // namespace rnicd::kubernetes
