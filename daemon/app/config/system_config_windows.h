#pragma once

#include "daemon/pipes/door.h"
#include "provider/networkdirect/card/nd_options.h"

namespace rnicd::app {

// The part of the configuration that only Windows has.
struct SystemConfig {
  pipes::PipeNames pipes;
  provider::NetworkDirectOptions network_direct;
};

}  // namespace rnicd::app
