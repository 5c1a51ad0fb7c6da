#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/channel.h"

namespace rnicd::inline client {

// Errors: FIELD_OUT_OF_RANGE of socket_dir for a path that does not fit a Unix socket address.
absl::Status CheckUnixAddress(const std::string& path);
// gRPC's name of a socket at this path: a URI, so that "%", "#" and "?" of the path are written in another way.
std::string UnixTarget(const std::string& path);

// A channel to a Unix socket, with LocalChannelArguments. Connects on the first call; never fails here. Only on Linux.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path);

}  // namespace rnicd::inline client
