#include "tests/kubernetes/kubelet/socket_server.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace rnicd::test {

SocketServer::SocketServer(const std::string& path, grpc::Service& service) {
  // gRPC removes its original address when it shuts down; it does not know the name in use.
  const std::string given = path + ".starting";
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + given, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || std::rename(given.c_str(), path.c_str()) != 0) {
    std::perror(("a server on " + path).c_str());
    std::abort();
  }
}

SocketServer::~SocketServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace rnicd::test
