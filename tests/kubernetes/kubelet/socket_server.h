#pragma once

#include <memory>
#include <string>

#include "grpcpp/server.h"

namespace rnicd::test {

// A gRPC server on a Unix socket that ends like a killed process: its socket file remains without a listener.
// Lifetime: the service must outlive it.
class SocketServer {
 public:
  // Ends the test program when it cannot listen.
  SocketServer(const std::string& path, grpc::Service& service);
  // Returns when no call is running any more.
  ~SocketServer();

 private:
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rnicd::test
