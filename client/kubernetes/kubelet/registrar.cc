#include "client/kubernetes/kubelet/registrar.h"

#include <memory>

#include "client/kubernetes/kubelet/grpc_channel.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"

namespace rnicd::kubernetes {

absl::Status Registrar::Register(const std::string& kubelet_socket, const v1beta1::RegisterRequest& request,
                                 std::chrono::milliseconds deadline) {
  const std::unique_ptr<v1beta1::Registration::Stub> stub =
      v1beta1::Registration::NewStub(MakeUnixChannel(kubelet_socket));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  if (!Begin(context)) {
    return absl::CancelledError("stopping");
  }
  v1beta1::Empty response;
  const grpc::Status status = stub->Register(&context, request, &response);
  End();
  return StatusFromGrpc(status);
}

void Registrar::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  if (running_ != nullptr) {
    running_->TryCancel();
  }
}

bool Registrar::Begin(grpc::ClientContext& context) {
  MutexLock lock(mutex_);
  if (cancelled_) {
    return false;
  }
  running_ = &context;
  return true;
}

void Registrar::End() {
  MutexLock lock(mutex_);
  running_ = nullptr;
}

}  // namespace rnicd::kubernetes
