#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kubelet/podresources/pod_resources.grpc.pb.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"
#include "tests/kubernetes/kubelet/device_manager.h"

namespace rnicd::test {

// Service for plugins.
// Lifetime: the manager outlives it.
// Threads:  safe.
class RegistrationService final : public v1beta1::Registration::Service {
 public:
  RegistrationService(DeviceManager& manager, std::string folder) : manager_(manager), folder_(std::move(folder)) {}

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* response) override;

  void Refuse(const std::string& error);
  std::vector<Registration> registrations() const;

 private:
  // The text that Register fails with; empty: it succeeds.
  std::string Validate(const v1beta1::RegisterRequest& request);

  DeviceManager& manager_;
  const std::string folder_;
  mutable Mutex mutex_;
  std::string refusal_ RNICD_GUARDED_BY(mutex_);
  std::vector<Registration> registrations_ RNICD_GUARDED_BY(mutex_);
};

// Service for monitors.
// Lifetime: the manager outlives it.
// Threads:  safe.
class PodResourcesService final : public ::v1::PodResourcesLister::Service {
 public:
  explicit PodResourcesService(DeviceManager& manager) : manager_(manager) {}

  grpc::Status List(grpc::ServerContext* context, const ::v1::ListPodResourcesRequest* request,
                    ::v1::ListPodResourcesResponse* response) override;

  void SetAway(bool away) { away_ = away; }
  size_t lists() const { return lists_; }

 private:
  DeviceManager& manager_;
  std::atomic<bool> away_{false};
  std::atomic<size_t> lists_{0};
};

// Whether the name is "domain/type" and not reserved by Kubernetes.
bool IsExtendedResource(const std::string& name);

}  // namespace rnicd::test
