#include "tests/kubernetes/kubelet/plugin_client.h"

#include <utility>

#include "tests/support/calls/raw_channel.h"

namespace rnicd::test {
namespace {

// The kubelet waits forever where this timeout is used. A test does not.
constexpr std::chrono::seconds kForEver{120};

absl::Status GoError(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  return absl::UnknownError("rpc error: code = " + std::to_string(status.error_code()) +
                            " desc = " + status.error_message());
}

// The real kubelet uses context.WithTimeout, or no timeout at all.
template <typename Request, typename Response>
absl::StatusOr<Response> Call(v1beta1::DevicePlugin::Stub& stub,
                              grpc::Status (v1beta1::DevicePlugin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                                  Response*),
                              const Request& request, std::chrono::milliseconds timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  Response response;
  if (const grpc::Status status = (stub.*method)(&context, request, &response); !status.ok()) {
    return GoError(status);
  }
  return response;
}

}  // namespace

PluginClient::PluginClient(std::string resource, const std::string& socket)
    : resource_(std::move(resource)), socket_(socket), channel_(MakeChannel(socket)) {}

PluginClient::~PluginClient() {
  Cancel();
  if (watcher_.joinable()) {
    watcher_.join();
  }
}

void PluginClient::Cancel() {
  MutexLock lock(mutex_);
  if (stream_ != nullptr) {
    stream_->TryCancel();
  }
}

void PluginClient::Disconnect() {
  Cancel();
  // A channel to an address on which no process can ever listen.
  std::shared_ptr<grpc::Channel> closed = MakeChannel("/dev/null");
  MutexLock lock(mutex_);
  channel_.swap(closed);
}

std::shared_ptr<grpc::Channel> PluginClient::channel() const {
  MutexLock lock(mutex_);
  return channel_;
}

std::unique_ptr<v1beta1::DevicePlugin::Stub> PluginClient::stub() const {
  return v1beta1::DevicePlugin::NewStub(channel());
}

absl::StatusOr<v1beta1::DevicePluginOptions> PluginClient::Connect(std::chrono::milliseconds timeout) {
  if (!channel()->WaitForConnected(std::chrono::system_clock::now() + timeout)) {
    return absl::UnknownError("failed to dial device plugin: context deadline exceeded");
  }
  absl::StatusOr<v1beta1::DevicePluginOptions> options =
      Call(*stub(), &v1beta1::DevicePlugin::Stub::GetDevicePluginOptions, v1beta1::Empty(), timeout);
  if (!options.ok()) {
    return absl::UnknownError("failed to get device plugin options: " + std::string(options.status().message()));
  }
  return options;
}

void PluginClient::Watch(std::function<void(const v1beta1::ListAndWatchResponse&)> on_devices,
                         std::function<void()> on_end) {
  watcher_ = std::thread([this, on_devices = std::move(on_devices), on_end = std::move(on_end)] {
    Read(on_devices);
    on_end();
  });
}

void PluginClient::Read(const std::function<void(const v1beta1::ListAndWatchResponse&)>& on_devices) {
  grpc::ClientContext* context = nullptr;
  {
    MutexLock lock(mutex_);
    context = stream_.get();
  }
  {
    const auto reader = stub()->ListAndWatch(context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse response;
    while (reader->Read(&response)) {
      on_devices(response);
    }
    reader->Finish();
  }
  MutexLock lock(mutex_);
  stream_.reset();
}

absl::StatusOr<v1beta1::AllocateResponse> PluginClient::Allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest request;
  request.add_container_requests()->mutable_device_ids()->Assign(ids.begin(), ids.end());
  return Call(*stub(), &v1beta1::DevicePlugin::Stub::Allocate, request, kForEver);
}

absl::StatusOr<v1beta1::PreferredAllocationResponse> PluginClient::Prefer(const std::vector<std::string>& available,
                                                                          const std::vector<std::string>& must_include,
                                                                          size_t size) {
  v1beta1::PreferredAllocationRequest request;
  v1beta1::ContainerPreferredAllocationRequest& container = *request.add_container_requests();
  container.mutable_available_device_ids()->Assign(available.begin(), available.end());
  container.mutable_must_include_device_ids()->Assign(must_include.begin(), must_include.end());
  container.set_allocation_size(static_cast<int32_t>(size));
  return Call(*stub(), &v1beta1::DevicePlugin::Stub::GetPreferredAllocation, request, kForEver);
}

absl::Status PluginClient::PreStart(const std::vector<std::string>& ids, std::chrono::milliseconds timeout) {
  v1beta1::PreStartContainerRequest request;
  request.mutable_device_ids()->Assign(ids.begin(), ids.end());
  return Call(*stub(), &v1beta1::DevicePlugin::Stub::PreStartContainer, request, timeout).status();
}

}  // namespace rnicd::test
