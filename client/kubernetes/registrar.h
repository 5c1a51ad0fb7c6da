#pragma once

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "grpcpp/client_context.h"
#include "kubelet/v1beta1/device_plugin.pb.h"

namespace rnicd::kubernetes {

// Calls Register of the kubelet. Threads: safe; one Register at a time.
class Registrar {
 public:
  // Each call connects anew: the kubelet may be another one each time. Errors: gRPC's code and the kubelet's text.
  absl::Status Register(const std::string& kubelet_socket, const v1beta1::RegisterRequest& request,
                        std::chrono::milliseconds deadline);
  // The call that runs fails soon, and so do all later ones.
  void Cancel();

 private:
  // False after Cancel.
  bool Begin(grpc::ClientContext& context);
  void End();

  Mutex mutex_;
  grpc::ClientContext* running_ RNICD_GUARDED_BY(mutex_) = nullptr;
  bool cancelled_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::kubernetes
