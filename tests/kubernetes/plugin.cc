#include "tests/kubernetes/plugin.h"

#include <algorithm>
#include <cstdio>

#include "gtest/gtest.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

std::vector<std::string> Sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

}  // namespace

absl::StatusOr<kubernetes::ContainerAllocation> FakeAllocator::Allocate(const std::string& resource,
                                                                        const std::vector<std::string>& device_ids) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) {
    return failure_;
  }
  allocations_.push_back(Sorted(device_ids));
  return kubernetes::ContainerAllocation{.container_path = "/run/rnicd",
                                         .host_path = "/doors/" + resource + "/" + std::to_string(allocations_.size())};
}

absl::Status FakeAllocator::Prepare(const std::string&, const std::vector<std::string>& device_ids) {
  MutexLock lock(mutex_);
  preparations_.push_back(Sorted(device_ids));
  return failure_;
}

void FakeAllocator::Fail(const absl::Status& status) {
  MutexLock lock(mutex_);
  failure_ = status;
}

std::vector<std::vector<std::string>> FakeAllocator::allocations() const {
  MutexLock lock(mutex_);
  return allocations_;
}

std::vector<std::vector<std::string>> FakeAllocator::preparations() const {
  MutexLock lock(mutex_);
  return preparations_;
}

std::vector<kubernetes::Device> Devices(size_t count, bool healthy) {
  std::vector<kubernetes::Device> devices;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    devices.push_back(kubernetes::Device{
        .id = "numa0-" + std::string(4 - number.size(), '0') + number, .numa_node = 0, .healthy = healthy});
  }
  return devices;
}

Plugin::Plugin(const kubernetes::KubeletOptions& options, const std::vector<std::string>& resources, size_t devices) {
  std::vector<kubernetes::OfferedResource> offered;
  for (const std::string& resource : resources) {
    boards_[resource] = std::make_unique<kubernetes::DeviceBoard>();
    boards_[resource]->Set(Devices(devices));
    offered.push_back({.name = resource, .board = boards_[resource].get()});
  }
  link_ = std::make_unique<kubernetes::KubeletLink>(options, offered, allocator_, logger_);
  EXPECT_TRUE(link_->Start().ok());
}

Pod PodWith(const std::string& uid, size_t devices) {
  return Pod{.uid = uid,
             .namespace_name = "default",
             .name = uid,
             .containers = {Container{.name = "main", .resources = {{kMemory, devices}}}}};
}

bool Offers(Kubelet& kubelet, const std::string& resource, size_t capacity, size_t allocatable) {
  const Kubelet::Amounts wanted{.capacity = capacity, .allocatable = allocatable};
  return Eventually([&] { return kubelet.NodeStatus(resource) == wanted; });
}

}  // namespace rnicd::test
