#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/kubernetes/kubelet/allocator.h"
#include "client/kubernetes/kubelet/kubelet_link.h"
#include "client/kubernetes/resources/device_board.h"
#include "log/logger.h"
#include "tests/kubernetes/kubelet/kubelet.h"

namespace rnicd::test {

inline constexpr char kMemory[] = "rnicd.io/memory-64mi";
inline constexpr char kLarge[] = "rnicd.io/memory-1gi";

// Returns a configured allocation, and records the devices of each call.
// Threads: safe.
class FakeAllocator final : public kubernetes::Allocator {
 public:
  absl::StatusOr<kubernetes::ContainerAllocation> Allocate(const std::string& resource,
                                                           const std::vector<std::string>& device_ids) override;
  absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) override;
  void KubeletConnected() override {}
  std::set<std::string> DevicesToAvoid(const std::string&) override { return {}; }
  void AwaitTurn() override {}

  // Makes both calls fail with this status.
  void Fail(const absl::Status& status);
  // The device ids of each call, sorted.
  std::vector<std::vector<std::string>> allocations() const;
  std::vector<std::vector<std::string>> preparations() const;

 private:
  mutable Mutex mutex_;
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> allocations_ RNICD_GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> preparations_ RNICD_GUARDED_BY(mutex_);
};

// `count` devices "numa0-0000", ...
std::vector<kubernetes::Device> Devices(size_t count, bool healthy = true);

// A device plugin without a daemon: a KubeletLink and its dependencies. The constructor starts it.
class Plugin {
 public:
  explicit Plugin(const kubernetes::KubeletOptions& options, const std::vector<std::string>& resources = {kMemory},
                  size_t devices = 4);

  kubernetes::DeviceBoard& board(const std::string& resource = kMemory) { return *boards_.at(resource); }
  FakeAllocator& allocator() { return allocator_; }
  kubernetes::KubeletLink& link() { return *link_; }

 private:
  const log::Logger logger_{{.level = log::Level::kInfo}};
  FakeAllocator allocator_;
  std::map<std::string, std::unique_ptr<kubernetes::DeviceBoard>> boards_;
  std::unique_ptr<kubernetes::KubeletLink> link_;
};

// A pod "default/`uid`" with one container "main" that requests that many devices of kMemory.
Pod PodWith(const std::string& uid, size_t devices);

// Waits until the node offers exactly that many devices.
bool Offers(Kubelet& kubelet, const std::string& resource, size_t capacity, size_t allocatable);

}  // namespace rnicd::test
