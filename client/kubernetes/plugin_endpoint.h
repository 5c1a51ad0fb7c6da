#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/kubernetes/allocator.h"
#include "client/kubernetes/file_identity.h"
#include "client/kubernetes/offered_resource.h"
#include "client/kubernetes/plugin_service.h"
#include "daemon/log/logger.h"
#include "grpcpp/server.h"

namespace rnicd::kubernetes {

// One life of a resource's socket: a server that listens on it from Serve until this goes.
// Lifetime: what Serve is given outlives it. Threads: safe.
class PluginEndpoint {
 public:
  // Listens on `path`. Whatever file stood there is replaced in one step, and no link is followed; a directory is not.
  // Errors: what went wrong with which file.
  static absl::StatusOr<std::unique_ptr<PluginEndpoint>> Serve(const std::string& path, const OfferedResource& resource,
                                                               Allocator& allocator, const log::Logger& logger,
                                                               std::function<void()> on_watch_ended);
  // Ends the streams, waits until no call runs any more, and takes the socket away if it is still its own.
  ~PluginEndpoint();
  PluginEndpoint(const PluginEndpoint&) = delete;
  PluginEndpoint& operator=(const PluginEndpoint&) = delete;

  // The socket at the path is the one that this listens on.
  bool InPlace() const;
  // The kubelet has a stream open.
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

// The name under which a socket is made before it stands at `path`.
std::string NewSocketPath(const std::string& path);

}  // namespace rnicd::kubernetes
