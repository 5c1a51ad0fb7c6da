#pragma once

#include <vector>

#include "daemon/gate/method.h"
#include "provider/api/device.h"

namespace rnicd::service {

// Cards and what they can do: see adapter_service.proto. `provider` outlives the methods.
std::vector<gate::Method> AdapterMethods(provider::Provider& provider);

}  // namespace rnicd::service
