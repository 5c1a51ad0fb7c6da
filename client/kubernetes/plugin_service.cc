#include "client/kubernetes/plugin_service.h"

#include <chrono>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "client/kubernetes/preference.h"

namespace rnicd::kubernetes {
namespace {

// A stream that broke is noticed so late at most; a change on the board, at once.
constexpr std::chrono::milliseconds kStreamLook{500};

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
    v1beta1::Device& told = *response.add_devices();
    told.set_id(device.id);
    told.set_health(device.healthy ? "Healthy" : "Unhealthy");
    if (device.numa_node != kNoNumaNode) {
      told.mutable_topology()->add_nodes()->set_id(device.numa_node);
    }
  }
  return response;
}

v1beta1::ContainerAllocateResponse ToMessage(const ContainerGift& gift) {
  v1beta1::ContainerAllocateResponse response;
  response.mutable_envs()->insert(gift.environment.begin(), gift.environment.end());
  response.mutable_annotations()->insert(gift.annotations.begin(), gift.annotations.end());
  for (const MountPoint& mount : gift.mounts) {
    v1beta1::Mount& told = *response.add_mounts();
    told.set_container_path(mount.container_path);
    told.set_host_path(mount.host_path);
    told.set_read_only(mount.read_only);
  }
  for (const std::string& name : gift.cdi_devices) {
    response.add_cdi_devices()->set_name(name);
  }
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
  watchers_.fetch_add(1);
  Tell(*context, *writer);
  watchers_.fetch_sub(1);
  if (!stopping_.load() && !board_.Get().closed) {
    on_watch_ended_();
  }
  return grpc::Status::OK;
}

// Before the first Set nothing is told: an empty list would tell the kubelet that all devices are gone.
void PluginService::Tell(const grpc::ServerContext& context,
                         grpc::ServerWriter<v1beta1::ListAndWatchResponse>& writer) const {
  uint64_t told = 0;
  DeviceBoard::View view = board_.Get();
  while (!stopping_.load() && !view.closed && !context.IsCancelled()) {
    if (view.version != told) {
      if (!writer.Write(ToMessage(view.devices))) {
        return;
      }
      told = view.version;
    }
    view = board_.WaitForChange(told, kStreamLook, &stopping_);
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
    // Taken out, so that an id that comes twice is refused too.
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
        PreferDevices(devices, ToVector(container.available_device_ids()),
                      ToVector(container.must_include_device_ids()), static_cast<size_t>(container.allocation_size()));
    v1beta1::ContainerPreferredAllocationResponse& answer = *response->add_container_responses();
    answer.mutable_device_ids()->Assign(preferred.begin(), preferred.end());
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) {
  // All are checked before the first is given anything.
  for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
    if (const absl::Status status = CheckIds(ToVector(container.device_ids())); !status.ok()) {
      logger_.Warning("allocation refused", {{"resource", resource_}, {"error", std::string(status.message())}});
      return ToGrpc(status);
    }
  }
  for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
    const absl::StatusOr<ContainerGift> gift = allocator_.Allocate(resource_, ToVector(container.device_ids()));
    if (!gift.ok()) {
      logger_.Warning("allocation failed", {{"resource", resource_}, {"error", std::string(gift.status().message())}});
      return ToGrpc(gift.status());
    }
    *response->add_container_responses() = ToMessage(*gift);
  }
  return grpc::Status::OK;
}

grpc::Status PluginService::PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse*) {
  // Not CheckIds: what was allocated stays so when the node offers less now.
  const absl::Status status = allocator_.Prepare(resource_, ToVector(request->device_ids()));
  if (!status.ok()) {
    logger_.Warning("a container may not start", {{"resource", resource_}, {"error", std::string(status.message())}});
  }
  return ToGrpc(status);
}

}  // namespace rnicd::kubernetes
