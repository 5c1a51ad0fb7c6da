#pragma once

#include <sys/socket.h>

#include <vector>

#include "base/files/unique_fd.h"

namespace rnicd {

// Takes ownership of every descriptor in the control data of a message that was received, so that none is leaked.
std::vector<UniqueFd> TakeDescriptors(msghdr& message);

}  // namespace rnicd
