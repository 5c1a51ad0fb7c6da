#include "client/kubernetes/kubelet/plugin_service.h"

#include <chrono>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "client/kubernetes/resources/preference.h"

namespace rnicd::kubernetes {
namespace {

// Longest delay until a broken stream is noticed; a change on the board is noticed at once.
constexpr std::chrono::milliseconds kStreamPollInterval{500};

grpc::Status ToGrpc(const absl::Status& status) {
  // absl took its codes from gRPC; the numbers are the same.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

std::vector<std::string> ToVector(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return std::vector<std::string>(texts.begin(), texts.end());
}

v1beta1::ListAndWatchResponse ToMessage(const std::vector<Device>& devices) {
  v1beta1::ListAndWatchResponse response;
  for (const Device& device : devices) {
    v1beta1::Device& entry = *response.add_devices();
    entry.set_id(device.id);
    entry.set_health(device.healthy ? "Healthy" : "Unhealthy");
    if (device.numa_node != kNoNumaNode) {
      entry.mutable_topology()->add_nodes()->set_id(device.numa_node);
    }
  }
  return response;
}

v1beta1::ContainerAllocateResponse ToMessage(const ContainerAllocation& allocation) {
  v1beta1::ContainerAllocateResponse response;
  (*response.mutable_envs())["RNICD_SOCKET_DIR"] = allocation.container_path;
  v1beta1::Mount& mount = *response.add_mounts();
  mount.set_container_path(allocation.container_path);
  mount.set_host_path(allocation.host_path);
  mount.set_read_only(true);
  return response;
}

}  // namespace

PluginService::PluginService(std::string resource, const DeviceBoard& board, Allocator& allocator,
                             const log::Logger& logger, std::function<void()> on_watch_ended)
    : resource_(std::move(resource)),
      board_(board),
      allocator_(allocator),
      logger_(logger),
      on_watch_ended_(std::move(on_watch_ended)) {}

v1beta1::DevicePluginOptions PluginService::Options() {
  v1beta1::DevicePluginOptions options;
  options.set_pre_start_required(true);
  options.set_get_preferred_allocation_available(true);
  return options;
}

void PluginService::Stop() {
  stopping_.store(true);
  board_.Nudge();
}

grpc::Status PluginService::GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions* response) {
  *response = Options();
  return grpc::Status::OK;
}

grpc::Status PluginService::ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                                         grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  allocator_.KubeletConnected();
  watchers_.fetch_add(1);
  SendDevices(*context, *writer);
  watchers_.fetch_sub(1);
  if (!stopping_.load() && !board_.Get().closed) {
    on_watch_ended_();
  }
  return grpc::Status::OK;
}

// Sends nothing before the first Set: an empty list would make the kubelet remove all devices.
void PluginService::SendDevices(const grpc::ServerContext& context,
                                grpc::ServerWriter<v1beta1::ListAndWatchResponse>& writer) const {
  uint64_t sent = 0;
  DeviceBoard::View view = board_.Get();
  while (!stopping_.load() && !view.closed && !context.IsCancelled()) {
    if (view.version != sent) {
      if (!writer.Write(ToMessage(view.devices))) {
        return;
      }
      sent = view.version;
    }
    view = board_.WaitForChange(sent, kStreamPollInterval, &stopping_);
  }
}

absl::Status PluginService::CheckIds(const std::vector<std::string>& ids) const {
  const DeviceBoard::View view = board_.Get();
  if (view.version == 0) {
    return absl::UnavailableError("the devices are not known yet");
  }
  if (ids.empty()) {
    return absl::InvalidArgumentError("no device is named");
  }
  std::set<std::string_view> known;
  for (const Device& device : view.devices) {
    known.insert(device.id);
  }
  for (const std::string& id : ids) {
    // Erased, so that an id that occurs twice is refused too.
    if (known.erase(id) == 0) {
      return absl::InvalidArgumentError("no device '" + id + "' is left in " + resource_);
    }
  }
  return absl::OkStatus();
}

grpc::Status PluginService::GetPreferredAllocation(grpc::ServerContext*,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) {
  const std::vector<Device> devices = board_.Get().devices;
  for (const v1beta1::ContainerPreferredAllocationRequest& container : request->container_requests()) {
    if (container.allocation_size() < 0) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "allocation_size is negative");
    }
    const std::vector<std::string> preferred =
        PreferDevices(devices, {.available = ToVector(container.available_device_ids()),
                                .must_include = ToVector(container.must_include_device_ids()),
                                .avoid = allocator_.DevicesToAvoid(resource_),
                                .size = static_cast<size_t>(container.allocation_size())});
    v1beta1::ContainerPreferredAllocationResponse& answer = *response->add_container_responses();
    answer.mutable_device_ids()->Assign(preferred.begin(), preferred.end());
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) {
  if (request->container_requests().empty()) {
    return Probe();
  }
  // All containers are checked before the first one is allocated.
  for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
    if (const absl::Status status = CheckIds(ToVector(container.device_ids())); !status.ok()) {
      logger_.Warning("allocation refused", {{"resource", resource_}, {"error", std::string(status.message())}});
      return ToGrpc(status);
    }
  }
  for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
    const absl::StatusOr<ContainerAllocation> allocation =
        allocator_.Allocate(resource_, ToVector(container.device_ids()));
    if (!allocation.ok()) {
      logger_.Warning("allocation failed",
                      {{"resource", resource_}, {"error", std::string(allocation.status().message())}});
      return ToGrpc(allocation.status());
    }
    *response->add_container_responses() = ToMessage(*allocation);
  }
  return grpc::Status::OK;
}

// One probe at a time waits: a plugin that hangs must not lose a thread to each of them.
grpc::Status PluginService::Probe() {
  if (probing_.exchange(true)) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "an earlier probe still waits");
  }
  allocator_.AwaitTurn();
  probing_.store(false);
  return grpc::Status::OK;
}

grpc::Status PluginService::PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse*) {
  // Not CheckIds: an allocation stays valid when the node offers fewer devices now.
  const absl::Status status = allocator_.Prepare(resource_, ToVector(request->device_ids()));
  if (!status.ok()) {
    logger_.Warning("a container may not start", {{"resource", resource_}, {"error", std::string(status.message())}});
  }
  return ToGrpc(status);
}

}  // namespace rnicd::kubernetes
