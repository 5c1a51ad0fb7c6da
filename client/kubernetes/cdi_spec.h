#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/kubernetes/allocator.h"

namespace rnicd::kubernetes {

// Kind and name of the one device that rnicd describes to container engines: the directory of its sockets.
inline constexpr char kCdiDevice[] = "rnicd.io/socket=default";

// Writes `folder`/rnicd.io-socket.json, a specification of the Container Device Interface that mounts the directory and
// says where it is (RNICD_SOCKET_DIR). Replaced as a whole; written only when it differs. cdiVersion is the lowest that
// has what it uses. Errors: what went wrong with which file.
absl::Status WriteCdiSpec(const std::string& folder, const MountPoint& socket_directory);

}  // namespace rnicd::kubernetes
