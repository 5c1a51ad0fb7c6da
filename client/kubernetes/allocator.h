#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

struct MountPoint {
  std::string container_path;
  std::string host_path;
  bool read_only = true;
};

// What a container gets with its devices.
struct ContainerGift {
  std::map<std::string, std::string> environment;
  std::vector<MountPoint> mounts;
  // "rnicd.io/socket=default".
  std::vector<std::string> cdi_devices;
  std::map<std::string, std::string> annotations;
};

// Decides what containers get. Threads: safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // One container. Waits a little for a daemon that is away. Errors: for people; the pod fails with their text.
  virtual absl::StatusOr<ContainerGift> Allocate(const std::string& resource,
                                                 const std::vector<std::string>& device_ids) = 0;
  // Before each start of a container with these devices. Errors: the container may not start.
  virtual absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) = 0;
};

}  // namespace rnicd::kubernetes
