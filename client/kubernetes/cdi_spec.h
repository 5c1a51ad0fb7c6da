#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/kubernetes/kubelet/allocator.h"

namespace rnicd::kubernetes {

// Kind and name of the only device that rnicd describes to container engines: the directory of its sockets.
inline constexpr char kCdiDevice[] = "rnicd.io/socket=default";

// Writes `folder`/rnicd.io-socket.json, a specification of the Container Device Interface that mounts the directory and
// sets RNICD_SOCKET_DIR to its path. The file is replaced as a whole, and only when its content changes. cdiVersion is
// the lowest version that has every feature used. Errors: the file and the failed call.
absl::Status WriteCdiSpec(const std::string& folder, const MountPoint& socket_directory);

}  // namespace rnicd::kubernetes
