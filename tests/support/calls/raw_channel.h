#pragma once

#include <memory>
#include <string>

namespace grpc {
class Channel;
}  // namespace grpc

namespace rnicd::test {

// A channel to a socket of the daemon, or to a pipe on Windows. It has a connection of its own, which its first call
// makes.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& socket_path);

}  // namespace rnicd::test
