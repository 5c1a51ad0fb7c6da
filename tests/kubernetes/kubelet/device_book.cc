#include "tests/kubernetes/kubelet/device_book.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"

namespace rnicd::test {
namespace {

using nlohmann::json;

constexpr char kHealthy[] = "Healthy";
constexpr char kUnhealthy[] = "Unhealthy";

}  // namespace

void DeviceBook::Update(const std::string& resource, const v1beta1::ListAndWatchResponse& all) {
  std::map<std::string, v1beta1::Device>& devices = devices_[resource];
  devices.clear();
  for (const v1beta1::Device& device : all.devices()) {
    devices[device.id()] = device;
  }
}

void DeviceBook::MarkUnhealthy(const std::string& resource) {
  for (auto& [id, device] : devices_[resource]) {
    device.set_health(kUnhealthy);
  }
}

std::vector<v1beta1::Device> DeviceBook::Devices(const std::string& resource) const {
  std::vector<v1beta1::Device> answer;
  if (const auto found = devices_.find(resource); found != devices_.end()) {
    for (const auto& [id, device] : found->second) {
      answer.push_back(device);
    }
  }
  return answer;
}

std::vector<std::string> DeviceBook::Resources() const {
  std::vector<std::string> names;
  for (const auto& [resource, devices] : devices_) {
    names.push_back(resource);
  }
  return names;
}

DeviceBook::Ids DeviceBook::Healthy(const std::string& resource) const {
  Ids ids;
  for (const v1beta1::Device& device : Devices(resource)) {
    if (device.health() == kHealthy) {
      ids.insert(device.id());
    }
  }
  return ids;
}

DeviceBook::Ids DeviceBook::InUse(const std::string& resource) const {
  Ids ids;
  for (const auto& [pod, containers] : pods_) {
    for (const auto& [container, resources] : containers) {
      if (const auto found = resources.find(resource); found != resources.end()) {
        ids.insert(found->second.device_ids.begin(), found->second.device_ids.end());
      }
    }
  }
  return ids;
}

void DeviceBook::Insert(const std::string& pod, const std::string& container, const std::string& resource,
                        Allocation allocation) {
  pods_[pod][container][resource] = std::move(allocation);
}

const std::map<std::string, Allocation>& DeviceBook::Of(const std::string& pod, const std::string& container) const {
  static const std::map<std::string, Allocation> none;
  const auto containers = pods_.find(pod);
  if (containers == pods_.end()) {
    return none;
  }
  const auto resources = containers->second.find(container);
  return resources == containers->second.end() ? none : resources->second;
}

std::string DeviceBook::ToCheckpoint() const {
  json entries = json::array();
  for (const auto& [pod, containers] : pods_) {
    for (const auto& [container, resources] : containers) {
      for (const auto& [resource, allocation] : resources) {
        entries.push_back({{"PodUID", pod},
                           {"ContainerName", container},
                           {"ResourceName", resource},
                           {"DeviceIDs", {{"-1", allocation.device_ids}}},
                           {"AllocResp", absl::Base64Escape(allocation.answer.SerializeAsString())}});
      }
    }
  }
  json registered = json::object();
  for (const std::string& resource : Resources()) {
    registered[resource] = Healthy(resource);
  }
  return json{{"Data", {{"PodDeviceEntries", entries}, {"RegisteredDevices", registered}}}}.dump();
}

// Restores only the names of the resources: no device is healthy before its plugin reports it.
DeviceBook DeviceBook::FromCheckpoint(const std::string& text) {
  const json data = json::parse(text).at("Data");
  DeviceBook book;
  for (const json& entry : data.at("PodDeviceEntries")) {
    Allocation allocation;
    allocation.device_ids = entry.at("DeviceIDs").at("-1").get<std::set<std::string>>();
    std::string answer;
    absl::Base64Unescape(entry.at("AllocResp").get<std::string>(), &answer);
    allocation.answer.ParseFromString(answer);
    book.Insert(entry.at("PodUID"), entry.at("ContainerName"), entry.at("ResourceName"), std::move(allocation));
  }
  for (const auto& [resource, ids] : data.at("RegisteredDevices").items()) {
    book.devices_[resource];
  }
  return book;
}

}  // namespace rnicd::test
