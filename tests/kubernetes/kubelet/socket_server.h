#pragma once

#include <memory>
#include <string>

#include "grpcpp/server.h"

namespace rnicd::test {

// A gRPC server on a Unix socket that dies as a killed process does: its socket stays behind and nobody answers there.
// Lifetime: the service outlives it.
class SocketServer {
 public:
  // Ends the test program when it cannot listen.
  SocketServer(const std::string& path, grpc::Service& service);
  // Returns when no call runs any more.
  ~SocketServer();

 private:
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rnicd::test
