#include "tests/kubernetes/kubelet/services.h"

#include <regex>

namespace rnicd::test {

bool IsExtendedResource(const std::string& name) {
  static const std::regex kQualified(
      "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?");
  return std::regex_match(name, kQualified) && name.find("kubernetes.io/") == std::string::npos &&
         !name.starts_with("requests.");
}

grpc::Status RegistrationService::Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                                           v1beta1::Empty*) {
  const std::string error = Validate(*request);
  MutexLock lock(mutex_);
  registrations_.push_back(
      Registration{.resource = request->resource_name(), .endpoint = request->endpoint(), .error = error});
  // Errors in Go that are not gRPC statuses.
  return error.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNKNOWN, error);
}

std::string RegistrationService::Validate(const v1beta1::RegisterRequest& request) {
  {
    MutexLock lock(mutex_);
    if (!refusal_.empty()) {
      return refusal_;
    }
  }
  if (request.version() != "v1beta1") {
    return "requested API version \"" + request.version() +
           "\" is not supported by kubelet. Supported version is [\"v1beta1\"]";
  }
  if (!IsExtendedResource(request.resource_name())) {
    return "the ResourceName \"" + request.resource_name() + "\" is invalid";
  }
  return std::string(manager_.Connect(request.resource_name(), folder_ + "/" + request.endpoint()).message());
}

void RegistrationService::Refuse(const std::string& error) {
  MutexLock lock(mutex_);
  refusal_ = error;
}

std::vector<Registration> RegistrationService::registrations() const {
  MutexLock lock(mutex_);
  return registrations_;
}

// Each device is in a separate entry, and ordinary init containers are missing, as in the kubelet's responses.
grpc::Status PodResourcesService::List(grpc::ServerContext*, const ::v1::ListPodResourcesRequest*,
                                       ::v1::ListPodResourcesResponse* response) {
  ++lists_;
  if (away_) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
  }
  for (const Pod& pod : manager_.pods()) {
    ::v1::PodResources& told = *response->add_pod_resources();
    told.set_name(pod.name);
    told.set_namespace_(pod.namespace_name);
    for (const Container& container : pod.containers) {
      if (container.init && !container.restartable) {
        continue;
      }
      ::v1::ContainerResources& resources = *told.add_containers();
      resources.set_name(container.name);
      for (const auto& [resource, allocation] : manager_.Of(pod.uid, container.name)) {
        for (const std::string& id : allocation.device_ids) {
          ::v1::ContainerDevices& device = *resources.add_devices();
          device.set_resource_name(resource);
          device.add_device_ids(id);
        }
      }
    }
  }
  return grpc::Status::OK;
}

}  // namespace rnicd::test
