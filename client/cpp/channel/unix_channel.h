#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/files/unique_fd.h"
#include "grpcpp/channel.h"

namespace rnicd::inline client {

// Errors: FIELD_OUT_OF_RANGE of socket_dir for a path that does not fit a Unix socket address.
absl::Status CheckUnixAddress(const std::string& path);
// gRPC's name of a socket at this path: a URI, so that "%", "#" and "?" of the path are written in another way.
std::string UnixTarget(const std::string& path);

// A channel over a socket that ConnectUnixSocket connected, with LocalChannelArguments. It never connects again: a
// session belongs to its connection. gRPC does not wait for room in a listener's queue: its own socket does not block,
// gets EAGAIN at once, and gRPC takes that for a connect in progress, reads from the socket, fails with EINVAL, and
// lets 100 ms to 5 s pass before it tries again.
std::shared_ptr<grpc::Channel> MakeChannelOver(UniqueFd connected_socket);

// A channel to a Unix socket of another program, with LocalChannelArguments. Connects on the first call; never fails
// here. Only on Linux.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path);

}  // namespace rnicd::inline client
