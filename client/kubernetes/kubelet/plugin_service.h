#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/kubernetes/kubelet/allocator.h"
#include "client/kubernetes/resources/device_board.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// The whole DevicePlugin service for one resource. Allocate and PreStartContainer refuse ids that are not on the board
// with INVALID_ARGUMENT; preferences tolerate them, because the kubelet's list may be older. An Allocate for no
// container is the probe: it succeeds when an allocation could begin.
// Lifetime: board, allocator and logger outlive it; it outlives its server.
// Threads:  safe.
class PluginService final : public v1beta1::DevicePlugin::Service {
 public:
  // `on_watch_ended` is called when a ListAndWatch stream ends before Stop and before the board is closed: the kubelet
  // exited, or will reconnect.
  PluginService(std::string resource, const DeviceBoard& board, Allocator& allocator, const log::Logger& logger,
                std::function<void()> on_watch_ended);

  // Options that the plugin sends to the kubelet when it registers.
  static v1beta1::DevicePluginOptions Options();

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* context, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* context, const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext* context, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* context, const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

  // Ends all streams, also later ones.
  void Stop();
  // Number of open streams; above 0 the kubelet is watching.
  uint64_t watchers() const { return watchers_.load(); }

 private:
  grpc::Status Probe();
  void SendDevices(const grpc::ServerContext& context, grpc::ServerWriter<v1beta1::ListAndWatchResponse>& writer) const;
  absl::Status CheckIds(const std::vector<std::string>& ids) const;

  const std::string resource_;
  const DeviceBoard& board_;
  Allocator& allocator_;
  const log::Logger& logger_;
  const std::function<void()> on_watch_ended_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> watchers_{0};
  std::atomic<bool> probing_{false};
};

}  // namespace rnicd::kubernetes
