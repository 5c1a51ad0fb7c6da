#include "client/kubernetes/daemon_watch.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "client/kubernetes/resources/inventory.h"

namespace rnicd::kubernetes {
namespace {

// The node's limit of a resource; 0: no limit.
uint64_t LimitOf(const v1::GetStatusResponse& status, std::string_view name) {
  for (const v1::ResourceUse& resource : status.resources()) {
    if (resource.name() == name) {
      return resource.limit();
    }
  }
  return 0;
}

std::vector<AdapterFacts> AdaptersOf(const v1::GetStatusResponse& status) {
  std::vector<AdapterFacts> adapters;
  for (const v1::AdapterStatus& adapter : status.adapters()) {
    adapters.push_back({.numa_node = adapter.has_numa_node() ? static_cast<int>(adapter.numa_node()) : kNoNumaNode,
                        .healthy = adapter.healthy()});
  }
  return adapters;
}

}  // namespace

DaemonWatch::DaemonWatch(Daemon& daemon, const Clock& clock, const log::Logger& logger, WatchOptions options)
    : daemon_(daemon), clock_(clock), logger_(logger), options_(std::move(options)) {
  for (const ResourceSpec& resource : options_.resources) {
    boards_.emplace(resource.name, std::make_unique<DeviceBoard>());
  }
}

// A restarted daemon is recognised by an uptime shorter than its predecessor's, or by another pid.
DaemonWatch::PollResult DaemonWatch::Poll() {
  const absl::StatusOr<v1::GetStatusResponse> status = daemon_.Status();
  const Instant now = clock_.Now();
  if (!status.ok()) {
    LogOnChange("the daemon does not answer: " + std::string(status.status().message()));
    if (last_.has_value() && now - last_seen_ > options_.timeout) {
      Plan(*last_, /*serving=*/false);
    }
    return {};
  }
  const bool is_new = !last_.has_value() || status->uptime_ms() < last_->uptime_ms() || status->pid() != last_->pid();
  last_ = *status;
  last_seen_ = now;
  Plan(*status, /*serving=*/!status->draining());
  return {.reachable = true, .is_new = is_new};
}

void DaemonWatch::Plan(const v1::GetStatusResponse& status, bool serving) {
  const std::array limits = {LimitOf(status, "pinned_bytes"), LimitOf(status, "memory_bytes")};
  const uint64_t pool = options_.pool_bytes != 0 ? options_.pool_bytes : PoolBytes(limits, options_.machine_bytes);
  absl::StatusOr<std::map<std::string, std::vector<Device>>> plan =
      PlanDevices(options_.resources, pool, AdaptersOf(status), serving);
  plan_error_ = plan.status();
  if (!plan.ok()) {
    LogOnChange("no devices: " + std::string(plan.status().message()));
    return;
  }
  for (auto& [resource, devices] : *plan) {
    LogDeviceChange(resource, devices);
    boards_.at(resource)->Set(std::move(devices));
  }
  known_ = true;
  if (serving) {
    LogOnChange("");
  }
}

void DaemonWatch::LogDeviceChange(const std::string& resource, const std::vector<Device>& devices) const {
  const auto healthy = [](const std::vector<Device>& some) {
    return std::count_if(some.begin(), some.end(), [](const Device& device) { return device.healthy; });
  };
  const std::vector<Device> before = boards_.at(resource)->Get().devices;
  if (devices.size() != before.size() || healthy(devices) != healthy(before)) {
    logger_.Info("devices", {{"resource", resource}, {"all", devices.size()}, {"healthy", healthy(devices)}});
  }
}

void DaemonWatch::LogOnChange(const std::string& trouble) {
  if (trouble == trouble_) {
    return;
  }
  trouble_ = trouble;
  if (trouble.empty()) {
    logger_.Info("the daemon serves again");
  } else {
    logger_.Warning(trouble);
  }
}

std::optional<uint64_t> DaemonWatch::OfferedBytes(const std::string& resource,
                                                  const std::vector<std::string>& device_ids) const {
  const auto spec = std::ranges::find(options_.resources, resource, &ResourceSpec::name);
  const auto board = boards_.find(resource);
  if (spec == options_.resources.end() || board == boards_.end()) {
    return std::nullopt;
  }
  const DeviceBoard::View view = board->second->Get();
  return view.version == 0 ? std::nullopt : std::optional(CountOffered(view.devices, device_ids) * spec->unit_bytes);
}

void DaemonWatch::Close() {
  for (const auto& [resource, board] : boards_) {
    board->Close();
  }
}

}  // namespace rnicd::kubernetes
