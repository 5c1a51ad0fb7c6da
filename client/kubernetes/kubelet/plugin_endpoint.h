#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/kubernetes/kubelet/allocator.h"
#include "client/kubernetes/kubelet/file_identity.h"
#include "client/kubernetes/kubelet/plugin_service.h"
#include "client/kubernetes/resources/device_board.h"
#include "grpcpp/server.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// The server on a resource's socket; listens from Serve until destruction.
// Lifetime: the arguments of Serve must outlive it.
// Threads:  safe.
class PluginEndpoint {
 public:
  // Listens on `path`. An existing file is replaced in one step and a symbolic link is not followed; a directory is an
  // error.
  // Errors: the file and the failed call.
  static absl::StatusOr<std::unique_ptr<PluginEndpoint>> Serve(const std::string& path, const OfferedResource& resource,
                                                               Allocator& allocator, const log::Logger& logger,
                                                               std::function<void()> on_watch_ended);
  // Ends the streams, waits until no call is running, and removes the socket if it is still this server's.
  ~PluginEndpoint();
  PluginEndpoint(const PluginEndpoint&) = delete;
  PluginEndpoint& operator=(const PluginEndpoint&) = delete;

  // Whether the socket at the path is the one that this server listens on.
  bool InPlace() const;
  // Whether the kubelet has an open stream.
  bool watched() const { return service_.watchers() > 0; }

 private:
  PluginEndpoint(std::string path, const OfferedResource& resource, Allocator& allocator, const log::Logger& logger,
                 std::function<void()> on_watch_ended);
  absl::Status Listen();

  const std::string path_;
  PluginService service_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<FileIdentity> socket_;
};

// Temporary name of a socket before it is renamed to `path`.
std::string NewSocketPath(const std::string& path);

}  // namespace rnicd::kubernetes
