#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "grpcpp/client_context.h"
#include "kubelet/v1beta1/device_plugin.pb.h"

namespace rnicd::kubernetes {

// Calls the kubelet's Register.
// Threads: safe; one Register at a time.
class Registrar {
 public:
  // Each call opens a new connection: the kubelet may have restarted. Errors: gRPC's code and the kubelet's text.
  absl::Status Register(const std::string& kubelet_socket, const v1beta1::RegisterRequest& request,
                        std::chrono::milliseconds deadline);
  // Makes the running call and all later calls fail.
  void Cancel();

 private:
  // Returns false after Cancel.
  bool Begin(grpc::ClientContext& context);
  void End();

  Mutex mutex_;
  grpc::ClientContext* running_ RNICD_GUARDED_BY(mutex_) = nullptr;
  bool cancelled_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::kubernetes
