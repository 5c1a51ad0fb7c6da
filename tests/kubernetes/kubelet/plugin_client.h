#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"

namespace rnicd::test {

// The kubelet's connection to one plugin. Errors have the texts of gRPC in Go: "rpc error: code = 3 desc = ...".
// Threads: safe.
class PluginClient {
 public:
  PluginClient(std::string resource, const std::string& socket);
  // Ends the stream.
  ~PluginClient();

  const std::string& resource() const { return resource_; }
  const std::string& socket() const { return socket_; }

  // Waits for the connection and requests the options.
  absl::StatusOr<v1beta1::DevicePluginOptions> Connect(std::chrono::milliseconds timeout);
  // Starts a thread that watches, and calls `on_end` there when the stream ends. May be called once.
  void Watch(std::function<void(const v1beta1::ListAndWatchResponse&)> on_devices, std::function<void()> on_end);
  // Makes the stream end soon.
  void Cancel();
  // Ends the stream and closes the connection when no call uses it any more; later calls fail to connect.
  void Disconnect();

  absl::StatusOr<v1beta1::AllocateResponse> Allocate(const std::vector<std::string>& ids);
  absl::StatusOr<v1beta1::PreferredAllocationResponse> Prefer(const std::vector<std::string>& available,
                                                              const std::vector<std::string>& must_include,
                                                              size_t size);
  absl::Status PreStart(const std::vector<std::string>& ids, std::chrono::milliseconds timeout);

 private:
  void Read(const std::function<void(const v1beta1::ListAndWatchResponse&)>& on_devices);
  std::shared_ptr<grpc::Channel> channel() const;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub() const;

  const std::string resource_;
  const std::string socket_;
  mutable Mutex mutex_;
  // Destroyed with the stream: a context keeps the connection open.
  std::unique_ptr<grpc::ClientContext> stream_ RNICD_GUARDED_BY(mutex_) = std::make_unique<grpc::ClientContext>();
  std::shared_ptr<grpc::Channel> channel_ RNICD_GUARDED_BY(mutex_);
  std::thread watcher_;
};

}  // namespace rnicd::test
