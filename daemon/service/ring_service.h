#pragma once

#include <vector>

#include "daemon/gate/method.h"

namespace rnicd::service {

std::vector<gate::Method> RingMethods();

}  // namespace rnicd::service
