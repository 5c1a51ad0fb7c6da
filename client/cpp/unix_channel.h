#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace rnicd::inline client {

// Whether this path fits a Unix socket address.
bool FitsUnixAddress(const std::string& path);

// A channel to a Unix socket, with LocalChannelArguments. Connects on the first call; never fails here. Only on Linux.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& path);

}  // namespace rnicd::inline client
